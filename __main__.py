"""The Pulumi program: one cluster, as `hpc:cluster` of the stack file describes it."""

import os

import pulumi

from components.cluster import Cluster, ClusterArgs
from components.provider import local_cloud
from hpc.errors import HpcError
from hpc.findings import FindingsError, has_errors
from hpc.spec.load import parse_cluster

# Since 3.249 replacement triggers and `deleted_with` do what this program relies on.
pulumi.require_pulumi_version(">=3.249.0")

try:
    value = pulumi.Config("hpc").require_object("cluster")
    loaded = parse_cluster(value, configured_region=pulumi.Config("alicloud").get("region"))
    if loaded.spec is None or has_errors(loaded.findings):
        raise FindingsError(loaded.findings)
    local = local_cloud(pulumi.get_stack(), os.environ)
    cluster = Cluster(loaded.spec.name, ClusterArgs(loaded.spec, local_cloud=local))
except FindingsError as error:
    for finding in error.findings:
        pulumi.log.error(f"{finding.code} {finding.path or 'cluster'}: {finding.message} (fix: {finding.fix})")
    raise pulumi.RunError(f"the stack file is refused: {error}") from None
except HpcError as error:
    raise pulumi.RunError(str(error)) from None

for name, output in cluster.outputs.items():
    pulumi.export(name, output)
