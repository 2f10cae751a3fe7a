"""The `hpc` command line: one module per command group, thin; rules and arithmetic live in their own rooms."""
