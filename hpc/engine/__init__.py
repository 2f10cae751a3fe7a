"""Getting and running the Pulumi engine: the CLI, the plugins, previews and deployments of the project's stacks."""
