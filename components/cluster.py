"""The whole cluster, in the order in which its parts depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.access import Access, AccessArgs
from components.bootstrap import Bootstrap, BootstrapArgs
from components.facts import FactSources, cluster_facts
from components.images import ImageFinder
from components.login import Login, LoginArgs
from components.management import Management, ManagementArgs
from components.network import Network, NetworkArgs
from components.ordering import after
from components.outputs import OutputSources, cluster_outputs
from components.pool import Pool, PoolArgs
from components.properties import cluster_properties, pool_properties
from components.provider import LocalCloud, local_provider
from components.roles import Roles, RolesArgs
from components.security import Security, SecurityArgs
from components.storage import Storage, StorageArgs
from components.sweep import Sweep, SweepArgs
from hpc.catalog import Catalog, load_catalog
from hpc.cost import Estimate, check_caps, estimate
from hpc.elastic.actions import ACTIONS
from hpc.findings import FindingsError, Severity, has_errors
from hpc.slurm.mounts import mounts_of
from hpc.slurm.profile import CLOUD, LOCAL
from hpc.slurm.userdata import compute_user_data
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import PoolSpec
from hpc.spec.rules import apply_checks, check


@dataclass(frozen=True, slots=True)
class ClusterArgs:
    """Arguments of `Cluster`.

    Attributes:
        spec: the cluster.
        catalog: instance types, images and prices.
        local_cloud: make it in this local cloud instead of the account's own.
    """

    spec: ClusterSpec
    catalog: Catalog = field(default_factory=load_catalog)
    local_cloud: LocalCloud | None = None


class Cluster(pulumi.ComponentResource):
    """A cluster. All rules and caps are checked before the first resource is registered.

    Attributes:
        spec: what it was made from.
        estimate: its price.
        outputs: what a person needs, for `pulumi.export`.

    Raises:
        FindingsError: the description breaks a rule or a cap; nothing has been registered.
    """

    spec: ClusterSpec
    estimate: Estimate
    outputs: Mapping[str, Any]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec, catalog = args.spec, args.catalog
        self.spec, self.estimate = spec, checked_estimate(spec, catalog)
        local = args.local_cloud
        provider = local_provider(f"{name}-local-cloud", spec.region, local) if local else None
        images = ImageFinder(catalog, provider)
        pool_images = {pool.name: images.image_id(spec.pool_image(pool), pool.instance_types[0]) for pool in spec.pools}
        management_image = images.image_id(spec.image, spec.management.instance_type)
        login_image = images.image_id(spec.image, spec.login.instance_type)
        super().__init__(
            "hpc:cluster:Cluster",
            name,
            cluster_properties(spec, self.estimate, catalog),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[provider] if provider else None)),
        )
        child = pulumi.ResourceOptions(parent=self)
        network = Network(f"{name}-network", NetworkArgs(spec), child)
        security = Security(f"{name}-security", SecurityArgs(spec, network.vpc_id), child)
        access = Access(f"{name}-access", AccessArgs(spec), child)
        roles = Roles(f"{name}-roles", RolesArgs(spec, ACTIONS), child)
        storage = Storage(f"{name}-storage", StorageArgs(spec, network.vpc_id, network.vswitch_ids), child)
        pools = {
            pool.name: Pool(
                f"{name}-pool-{pool.name}",
                PoolArgs(
                    spec=spec,
                    pool=pool,
                    properties=pool_properties(spec, pool, self.estimate, catalog),
                    image_id=pool_images[pool.name],
                    key_pair_name=access.key_pair_name,
                    ram_role_name=roles.compute_name,
                    user_data=pool_user_data(spec, pool, storage.servers),
                ),
                child,
            )
            for pool in spec.pools
        }
        # What elastic nodes hold on to, and what they are deleted before. The sweep runs twice: before the management
        # nodes go, since elastic nodes cost most, and after, for what the daemon may have started in between.
        holding = (network, security, access, roles, storage, *pools.values())
        late_sweep = Sweep(f"{name}-late-sweep", SweepArgs(spec, holding), child)
        management = Management(
            f"{name}-management",
            ManagementArgs(
                spec=spec,
                image_id=management_image,
                vswitch_ids=network.vswitch_ids,
                security_group_ids=security.management_groups,
                key_pair_name=access.key_pair_name,
                ram_role_name=roles.management_name,
                after=(late_sweep,),
            ),
            child,
        )
        login = Login(
            f"{name}-login",
            LoginArgs(
                spec=spec,
                image_id=login_image,
                vswitch_id=network.vswitch_ids[spec.zones[0]],
                security_group_ids=security.login_groups,
                key_pair_name=access.key_pair_name,
            ),
            child,
        )
        standing = (*holding, management, login)
        reachable = login.public_addresses or login.addresses
        templates = {pool_name: pool.launch_template_id for pool_name, pool in pools.items()}
        user = login_user(spec, catalog)
        bootstrapped: tuple[pulumi.Resource, ...] = ()
        if local is None or local.hosts:
            bootstrapped = (
                Bootstrap(
                    f"{name}-bootstrap",
                    BootstrapArgs(
                        spec=spec,
                        facts=cluster_facts(
                            spec,
                            FactSources(
                                management=management.addresses,
                                login=login.addresses,
                                servers=storage.servers,
                                vswitch_ids=network.vswitch_ids,
                                security_group_id=security.members_id,
                                ram_role=roles.management_name,
                                launch_template_ids=templates,
                                deployment_set_ids={key: pool.deployment_set_ids for key, pool in pools.items()},
                                image_ids=pool_images,
                                protocol="http" if local else "https",
                            ),
                        ),
                        # A node can be set up once the rules, mount targets and the way out are there.
                        management=tuple(after(address, standing) for address in management.addresses),
                        login=tuple(after(address, standing) for address in reachable),
                        private_key=access.private_key,
                        munge_key=access.munge_key,
                        database_password=access.database_password,
                        catalog=catalog,
                        user=user,
                        profile=LOCAL if local else CLOUD,
                    ),
                    child,
                ),
            )
        Sweep(f"{name}-sweep", SweepArgs(spec, (*standing, *bootstrapped)), child)
        self.outputs = cluster_outputs(
            spec,
            self.estimate,
            OutputSources(
                vpc_id=network.vpc_id,
                management=management.addresses,
                login=reachable,
                servers=storage.servers,
                launch_template_ids=templates,
                private_key=access.private_key,
                user=user,
            ),
        )
        self.register_outputs({key: value for key, value in self.outputs.items() if key != "ssh_private_key"})


def login_user(spec: ClusterSpec, catalog: Catalog) -> str:
    """The administrator's account in the cluster's image."""
    kind = catalog.instance_type(spec.login.instance_type)
    image = catalog.image(spec.image.os.value, kind.architecture if kind else "x86_64")
    return image.login_user if image else "root"


def pool_user_data(spec: ClusterSpec, pool: PoolSpec, servers: Mapping[str, pulumi.Output[str]]) -> pulumi.Output[str]:
    """User data of a pool's nodes; it names mount targets, which are known once they exist."""
    return pulumi.Output.all(**servers).apply(lambda known: compute_user_data(spec, pool, mounts_of(spec, known)))


def checked_estimate(spec: ClusterSpec, catalog: Catalog) -> Estimate:
    """Check every rule and cap; warnings go to the log.

    Returns:
        The price.

    Raises:
        FindingsError: an error is among the findings.
    """
    price = estimate(spec, catalog)
    findings = (*check(spec, catalog), *apply_checks(check_caps(spec, price), spec))
    if has_errors(findings):
        raise FindingsError(findings)
    for finding in findings:
        if finding.severity is Severity.WARNING:
            pulumi.log.warn(f"{finding.code} {finding.path or 'cluster'}: {finding.message} (fix: {finding.fix})")
    return price
