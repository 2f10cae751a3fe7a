"""What runs on the nodes, rendered from the spec: Slurm's files, user data, the bootstrap bundle."""
