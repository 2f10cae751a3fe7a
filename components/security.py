"""Security groups: members of the cluster reach each other on pinned ports, people reach the login nodes by SSH."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

import pulumi

from components.sdk import ecs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags
from hpc.spec.network import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT

SSH_PORTS = "22/22"
#: MariaDB, from the backup controller to the primary.
DATABASE_PORTS = "3306/3306"


@dataclass(frozen=True, slots=True)
class MemberRule:
    """One kind of traffic between members of a group.

    Attributes:
        name: last part of the resource's name.
        protocol: `tcp`, `udp` or `icmp`.
        ports: `first/last`; `-1/-1` for icmp, which has no ports.
        description: shown in the console.
    """

    name: str
    protocol: str
    ports: str
    description: str


def member_rules(spec: ClusterSpec) -> tuple[MemberRule, ...]:
    """What members of the cluster may do with each other, in both directions since both ends are in the group."""
    slurm = sorted((SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT))
    mpi = spec.network.mpi_ports.as_rule()
    return (
        MemberRule("ssh", "tcp", SSH_PORTS, "SSH between nodes"),
        MemberRule("slurm", "tcp", f"{slurm[0]}/{slurm[-1]}", "slurmctld, slurmd, slurmdbd"),
        MemberRule("srun", "tcp", spec.network.srun_ports.as_rule(), "srun and its tasks"),
        MemberRule("mpi-tcp", "tcp", mpi, "MPI over TCP"),
        MemberRule("mpi-udp", "udp", mpi, "MPI over UDP"),
        # Jumbo frames need the "fragmentation needed" answers of ICMP.
        MemberRule("icmp", "icmp", "-1/-1", "ping, path MTU"),
    )


@dataclass(frozen=True, slots=True)
class SecurityArgs:
    """Arguments of `Security`.

    Attributes:
        spec: the cluster.
        vpc_id: VPC of the groups.
    """

    spec: ClusterSpec
    vpc_id: pulumi.Input[str]


class Security(pulumi.ComponentResource):
    """Security groups and their rules; each rule is a resource, so that a change never touches the group.

    Attributes:
        members_id: group of all nodes.
        login_groups: groups of login nodes.
        management_groups: groups of management nodes; where there are two, one more for what only they may do.
    """

    members_id: pulumi.Output[str]
    login_groups: tuple[pulumi.Output[str], ...]
    management_groups: tuple[pulumi.Output[str], ...]

    def __init__(self, name: str, args: SecurityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        super().__init__(
            "hpc:security:Security", name, {"sshFrom": [str(cidr) for cidr in spec.network.ssh_from]}, opts
        )
        members = self._group(name, "members", "all nodes", args)
        login = self._group(name, "login", "login nodes", args)
        self._member_rules(name, spec, members)
        self._login_rules(name, spec, login)
        self.members_id = members.id
        self.login_groups = (members.id, login.id)
        self.management_groups = (members.id,)
        if spec.management.backup:
            management = self._group(name, "management", "management nodes", args)
            self._rule(
                f"{name}-management-database",
                management,
                MemberRule("database", "tcp", DATABASE_PORTS, "accounting database"),
                source=management.id,
            )
            self.management_groups = (members.id, management.id)
        self.register_outputs({"membersId": self.members_id, "loginId": login.id})

    def _group(self, name: str, role: str, meaning: str, args: SecurityArgs) -> ecs.SecurityGroup:
        return ecs.SecurityGroup(
            f"{name}-{role}",
            security_group_name=f"{args.spec.name}-{role}",
            description=f"HPC cluster {args.spec.name}: {meaning}",
            security_group_type="normal",
            # Without this members would reach each other on every port, whatever the rules say.
            inner_access_policy="Drop",
            vpc_id=args.vpc_id,
            tags=cluster_tags(args.spec, "network"),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _member_rules(self, name: str, spec: ClusterSpec, group: ecs.SecurityGroup) -> None:
        for rule in member_rules(spec):
            self._rule(f"{name}-members-{rule.name}", group, rule, source=group.id)

    def _login_rules(self, name: str, spec: ClusterSpec, group: ecs.SecurityGroup) -> None:
        for network in spec.network.ssh_from:
            # Named by the network, so that adding one touches no other.
            label = str(network).replace("/", "-").replace(":", "-")
            rule = MemberRule("ssh", "tcp", SSH_PORTS, "SSH from outside")
            self._rule(f"{name}-login-ssh-{label}", group, rule, network=network)

    def _rule(
        self,
        name: str,
        group: ecs.SecurityGroup,
        rule: MemberRule,
        *,
        source: pulumi.Input[str] | None = None,
        network: IPv4Network | IPv6Network | None = None,
    ) -> None:
        ecs.SecurityGroupRule(
            name,
            type="ingress",
            nic_type="intranet",
            policy="accept",
            priority=1,
            ip_protocol=rule.protocol,
            port_range=rule.ports,
            description=rule.description,
            security_group_id=group.id,
            source_security_group_id=source,
            cidr_ip=str(network) if isinstance(network, IPv4Network) else None,
            ipv6_cidr_ip=str(network) if isinstance(network, IPv6Network) else None,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=group),
        )
