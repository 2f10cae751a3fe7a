"""Slurm's own files: slurm.conf, slurmdbd.conf, cgroup.conf, topology.conf."""

from __future__ import annotations

from datetime import timedelta

from hpc.catalog import Catalog
from hpc.errors import RefusedError
from hpc.slurm import layout
from hpc.slurm.profile import CLOUD, HostProfile
from hpc.slurm.releases import OLDEST, RELEASES
from hpc.slurm.render import render
from hpc.slurm.shape import NodeShape, hostlist, node_shape
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import management_names
from hpc.spec.network import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from hpc.spec.pool import PoolSpec

#: Parameters that say what the cluster is; a user's value would make Slurm and the rest of the program disagree.
RESERVED = frozenset(
    {
        "accountingstoragehost",
        "accountingstorageport",
        "authtype",
        "clustername",
        "downnodes",
        "include",
        "nodename",
        "nodeset",
        "partitionname",
        "privatedata",
        "resumefailprogram",
        "resumeprogram",
        "resumetimeout",
        "slurmctldhost",
        "slurmctldport",
        "slurmdport",
        "slurmuser",
        "statesavelocation",
        "suspendexcnodes",
        "suspendprogram",
        "suspendtime",
        "suspendtimeout",
        "topologyplugin",
    }
)


def slurm_conf(spec: ClusterSpec, catalog: Catalog, profile: HostProfile = CLOUD) -> str:
    """Render slurm.conf.

    Args:
        spec: the cluster.
        catalog: cores and memory of the instance types.
        profile: whether the nodes are hosts of the cloud or of the local cloud.

    Raises:
        RefusedError: HPC803 for a type that is not in the catalog; HPC805 for a reserved user parameter.
    """
    shapes = {pool.name: node_shape(spec, pool, catalog) for pool in spec.pools}
    sections = [
        ("Who and where", _identity(spec)),
        ("Ports and timeouts", _network(spec)),
        ("Scheduling", _scheduling(spec)),
        ("Jobs and tasks", _tasks(profile)),
        ("Accounting", _accounting(spec, profile)),
        ("Power saving: nodes come and go through the elastic daemon", _power_saving(spec, profile)),
    ]
    sections = _with_user_parameters(spec, sections)
    pools = [
        {"node": _node_line(shapes[pool.name]), "partition": _partition_line(spec, pool, shapes[pool.name], profile)}
        for pool in spec.pools
    ]
    return render("slurm.conf.j2", cluster=spec.name, sections=sections, pools=pools)


def slurmdbd_conf(spec: ClusterSpec) -> str:
    """Render slurmdbd.conf, with a mark where the management node puts the password of the database."""
    return render("slurmdbd.conf.j2", cluster=spec.name, host=management_names(spec)[0], port=SLURMDBD_PORT)


def cgroup_conf(spec: ClusterSpec, profile: HostProfile = CLOUD) -> str:
    """Render cgroup.conf; nothing is constrained where control groups are read-only."""
    return render("cgroup.conf.j2", cluster=spec.name, constrain=profile.cgroups)


def topology_conf(spec: ClusterSpec) -> str | None:
    """Render topology.conf, or None where it is not asked for.

    A node's zone is chosen when it starts, so slurm.conf cannot know it: the leaves are the pools.
    """
    if not spec.slurm.topology:
        return None
    pools = [{"name": pool.name, "hostlist": hostlist(pool.name, 1, pool.max)} for pool in spec.pools]
    return render("topology.conf.j2", cluster=spec.name, pools=pools)


def _identity(spec: ClusterSpec) -> dict[str, str]:
    parameters = {"ClusterName": spec.name}
    # SlurmctldHost may stand twice: the second line names the backup controller.
    parameters["SlurmctldHost"] = "\nSlurmctldHost=".join(management_names(spec))
    return parameters | {
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "StateSaveLocation": layout.SHARED_STATE if spec.management.backup else layout.LOCAL_STATE,
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "info",
        # Nodes have no mail system; a site that has one says so in slurm.parameters.
        "MailProg": "/bin/true",
    }


def _network(spec: ClusterSpec) -> dict[str, str]:
    return {
        "SlurmctldPort": str(SLURMCTLD_PORT),
        "SlurmdPort": str(SLURMD_PORT),
        "SrunPortRange": str(spec.network.srun_ports),
        # Addresses of cloud nodes change, and a node cannot resolve its peers before they have registered: slurmctld
        # talks to every node itself and caches nothing.
        "TreeWidth": "65533",
        "CommunicationParameters": "NoAddrCache",
        "MessageTimeout": "30",
        "SlurmctldTimeout": "30" if spec.management.backup else "120",
        "SlurmdTimeout": "300",
        "InactiveLimit": "0",
        "KillWait": "30",
        # At least five times MessageTimeout.
        "UnkillableStepTimeout": "180",
        # A node that comes back with a valid configuration is used again, whatever made it DOWN.
        "ReturnToService": "2",
        "PrivateData": "cloud",
    }


def _scheduling(spec: ClusterSpec) -> dict[str, str]:
    parameters = {
        "SchedulerType": "sched/backfill",
        # A job counts as started only when all of its nodes have registered.
        "SchedulerParameters": "bf_continue,salloc_wait_nodes,sbatch_wait_nodes",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
    }
    # Without a topology nothing is written: the name of the plugin for none is not the same in all releases.
    return parameters | ({"TopologyPlugin": "topology/tree"} if spec.slurm.topology else {})


def _tasks(profile: HostProfile) -> dict[str, str]:
    parameters = {
        "MpiDefault": "pmix",
        "ProctrackType": "proctrack/cgroup" if profile.cgroups else "proctrack/linuxproc",
        "TaskPlugin": "task/affinity,task/cgroup" if profile.cgroups else "task/affinity",
        "LaunchParameters": "use_interactive_step",
        # Jobs whose spot nodes are taken away go back into the queue.
        "JobRequeue": "1",
        "KillOnBadExit": "1",
        # RDMA needs unlimited locked memory, and the limits of the login node must not reach the job.
        "PropagateResourceLimitsExcept": "MEMLOCK",
        # At allocation, so that all nodes of a job know each other's names before its first step.
        "PrologFlags": "Alloc",
        "Prolog": f"{layout.BOOTSTRAP}/prolog.sh",
        "TaskProlog": f"{layout.BOOTSTRAP}/task-prolog.sh",
    }
    if profile.oversubscribed:
        parameters["SlurmdParameters"] = "config_overrides"
    return parameters


def _accounting(spec: ClusterSpec, profile: HostProfile) -> dict[str, str]:
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": management_names(spec)[0],
        "AccountingStoragePort": str(SLURMDBD_PORT),
        "JobAcctGatherType": f"jobacct_gather/{'cgroup' if profile.cgroups else 'linux'}",
        "JobAcctGatherFrequency": "30",
    }


def _power_saving(spec: ClusterSpec, profile: HostProfile) -> dict[str, str]:
    kept = ",".join(hostlist(pool.name, 1, pool.min) for pool in spec.pools if pool.min)
    parameters = {
        "ResumeProgram": layout.RESUME_PROGRAM,
        "SuspendProgram": layout.SUSPEND_PROGRAM,
        # Either way the daemon is told to look now.
        "ResumeFailProgram": layout.SUSPEND_PROGRAM,
        # The daemon has the account's rate in view; Slurm hands over everything at once.
        "ResumeRate": "0",
        "SuspendRate": "0",
        "ResumeTimeout": str(max(_seconds(pool.resume_timeout) for pool in spec.pools)),
        "SuspendTimeout": str(profile.suspend_timeout),
        "SuspendTime": str(max(_seconds(pool.idle) for pool in spec.pools)),
        "SlurmctldParameters": ("cloud_reg_addrs,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=1"),
    }
    if kept:
        parameters["SuspendExcNodes"] = kept
    return parameters


def _with_user_parameters(
    spec: ClusterSpec, sections: list[tuple[str, dict[str, str]]]
) -> list[tuple[str, dict[str, str]]]:
    """The user's parameters as the last section; what they replace is taken out, since Slurm refuses repetitions."""
    given = {key.lower() for key in spec.slurm.parameters}
    for key in spec.slurm.parameters:
        if key.lower() in RESERVED:
            raise RefusedError(
                f"slurm.parameters.{key} is set by the program",
                code="HPC805",
                fix=f"remove {key}; what it says follows from the rest of the stack file",
            )
    kept = [
        (title, {key: value for key, value in values.items() if key.lower() not in given}) for title, values in sections
    ]
    return [*kept, ("From slurm.parameters of the stack file", dict(spec.slurm.parameters))] if given else kept


def _node_line(shape: NodeShape) -> str:
    return (
        f"NodeName={shape.hostlist} CPUs={shape.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={shape.cores} "
        f"ThreadsPerCore={shape.threads} RealMemory={shape.memory_mib} State=CLOUD "
        f"Feature={','.join(shape.features)} Weight={shape.weight}"
    )


def _partition_line(spec: ClusterSpec, pool: PoolSpec, shape: NodeShape, profile: HostProfile) -> str:
    default = (spec.slurm.default_partition or spec.pools[0].name) == pool.name
    minutes = "INFINITE" if pool.max_time is None else str(max(1, _seconds(pool.max_time) // 60))
    parameters = [
        f"PartitionName={pool.name}",
        f"Nodes={shape.hostlist}",
        f"Default={'YES' if default else 'NO'}",
        f"MaxTime={minutes}",
        "State=UP",
        # Without a default a job that names no memory would take all of a node's.
        f"DefMemPerCPU={shape.memory_mib // shape.cpus}",
        f"SuspendTime={_seconds(pool.idle)}",
        f"SuspendTimeout={profile.suspend_timeout}",
        f"ResumeTimeout={_seconds(pool.resume_timeout)}",
    ]
    if not pool.idle and RELEASES.get(spec.image.os, OLDEST) >= (23, 2):
        parameters.append("PowerDownOnIdle=YES")
    return " ".join(parameters)


def _seconds(value: timedelta) -> int:
    return int(value.total_seconds())
