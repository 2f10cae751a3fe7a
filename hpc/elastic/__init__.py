"""What starts and releases compute nodes: a daemon on the management node, and the two programs that Slurm calls.

Only the standard library, ClusterShell, tenacity and the ECS SDK are imported here: it is copied to the cluster.
"""
