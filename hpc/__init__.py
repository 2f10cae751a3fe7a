"""MPI clusters with Slurm and eRDMA on Alibaba Cloud: the package behind the Pulumi program and the `hpc` command."""

__version__ = "0.1.0"
