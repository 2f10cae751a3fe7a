"""The Pulumi program: one cluster, as `hpc:cluster` of the stack file describes it."""

import os

import pulumi

from components.cluster import Cluster, ClusterArgs
from components.provider import local_cloud
from hpc.checks import check_cluster
from hpc.errors import HpcError
from hpc.findings import FindingsError, has_errors

# Since 3.249 replacement triggers and `deleted_with` do what this program relies on.
pulumi.require_pulumi_version(">=3.249.0")

try:
    value = pulumi.Config("hpc").require_object("cluster")
    checked = check_cluster(value, configured_region=pulumi.Config("alicloud").get("region"))
    if checked.spec is None or has_errors(checked.findings):
        raise FindingsError(checked.findings)
    local = local_cloud(pulumi.get_stack(), os.environ)
    cluster = Cluster(checked.spec.name, ClusterArgs(checked.spec, local_cloud=local))
except FindingsError as error:
    for finding in error.findings:
        pulumi.log.error(f"{finding.code} {finding.path or 'cluster'}: {finding.message} (fix: {finding.fix})")
    raise pulumi.RunError(f"the stack file is refused: {error}") from None
except HpcError as error:
    raise pulumi.RunError(str(error)) from None

for name, output in cluster.outputs.items():
    pulumi.export(name, output)
