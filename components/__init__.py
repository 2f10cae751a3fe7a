"""Pulumi components: what a description of a cluster becomes in the cloud.

They compute nothing that a pure module can compute.
"""
