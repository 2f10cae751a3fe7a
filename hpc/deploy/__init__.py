"""From a stack's name to a run of the engine: the CLI, the plugins, the local cloud, the checks, in the right order."""
