"""One cluster on real hosts, as a user makes it (`hpc up`), and what tests do to it and see of it."""

from __future__ import annotations

import base64
import json
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from alibabacloud_ecs20140526 import models as ecs
from alibabacloud_ecs20140526.client import Client
from alibabacloud_nas20170626 import models as nas
from alibabacloud_nas20170626.client import Client as NasClient
from alibabacloud_tea_openapi.models import Config

from hpc.deploy.access import ssh_command
from hpc.deploy.local import cloud_dir, running_cloud
from hpc.deploy.session import open_session
from hpc.paths import PROJECT_ROOT
from localcloud.api.client import LocalCloud
from localcloud.hosts import addresses
from localcloud.hosts.naming import Names

REGION, ZONE, USER = "cn-hangzhou", "cn-hangzhou-j", "demo"
MANAGEMENT = "management-0"

#: Idle and start times are as short as hosts of one small machine allow.
CLUSTER: dict[str, Any] = {
    "name": "faults",
    "region": REGION,
    "zones": [ZONE],
    "network": {"cidr": "10.97.0.0/16", "ssh_from": ["192.0.2.0/24"]},
    "image": {"os": "debian-12"},
    "management": {"instance_type": "ecs.c7.large"},
    "login": {"instance_type": "ecs.c7.large"},
    "pools": [
        {
            "name": "mpi",
            "instance_types": ["ecs.c8i.large"],
            "interconnect": "tcp",
            "max": 3,
            "idle": "20s",
            "resume_timeout": "75s",
            "auto_release": "6h",
        },
        {
            # Its nodes are released soon after nobody watches them any more.
            "name": "brief",
            "instance_types": ["ecs.c8i.large"],
            "interconnect": "tcp",
            "max": 2,
            "idle": "5m",
            "resume_timeout": "45s",
            "auto_release": "40m",
        },
    ],
    "storage": [{"mount": "/home", "retain": False}],
    "access": {"users": [USER]},
    "usage": {"mpi": {"node_hours_per_month": 20}, "brief": {"node_hours_per_month": 20}},
    "protect": False,
}

#: What the tests turn the daemon to.
TUNING = {"poll": 2, "orphan_grace": 10, "failure_limit": 2, "cooldown": 15, "missing_age": 10}


@dataclass
class Run:
    """One `hpc up`."""

    code: int
    document: dict[str, Any]
    stderr: str
    seconds: float

    @property
    def changed(self) -> list[str]:
        return [f"{c['operation']} {c['name']}" for c in self.document["changes"] if c["operation"] != "same"]


@dataclass
class Site:
    """The cluster.

    Attributes:
        folder: of the stack file.
        runs: what was run with `up`, in order.
    """

    folder: Path
    runs: list[Run] = field(default_factory=list)
    _login: list[str] = field(default_factory=list)
    _management: list[str] = field(default_factory=list)

    # -- the program ---------------------------------------------------------------------------------------------------

    def up(self, *, timeout: int = 400) -> Run:
        """`hpc up` as a user types it."""
        file = self.folder / "Pulumi.local.yaml"
        config = {"alicloud:region": REGION, "hpc:cluster": CLUSTER}
        file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", "from hpc.cli.main import main; main()", "up", str(file), "--yes", "--json"],
            cwd=PROJECT_ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        text = done.stdout[done.stdout.index("{") :] if "{" in done.stdout else "{}"
        run = Run(done.returncode, json.loads(text), done.stderr, time.monotonic() - begin)
        self.runs.append(run)
        return run

    def connect(self) -> None:
        """Learn how to log in."""
        with open_session(self.folder / "Pulumi.local.yaml", progress=lambda line: None, check=False) as session:
            self._login = ssh_command(session, command=[])
            self._management = ssh_command(session, host=MANAGEMENT, command=[])

    @property
    def cloud(self) -> LocalCloud:
        cloud = running_cloud()
        assert cloud is not None
        return cloud

    # -- hosts ---------------------------------------------------------------------------------------------------------

    def try_login(self, command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return _run([*self._login, command], stdin)

    def try_management(self, command: str) -> subprocess.CompletedProcess[str]:
        return _run([*self._management, command])

    def login(self, command: str, stdin: str = "") -> str:
        return _text(lambda: self.try_login(command, stdin), command)

    def user(self, command: str, stdin: str = "") -> str:
        """As the user, with a login shell."""
        return self.login(f"su - {USER} -c {shlex.quote(command)}", stdin)

    def management(self, command: str) -> str:
        return _text(lambda: self.try_management(command), command)

    def journal(self) -> str:
        """What the elastic daemon has said."""
        return self.management("journalctl -u hpc-elastic --no-pager -o cat")

    def tune(self) -> None:
        """Give the daemon the times of the tests."""
        change = (
            "import json; p = '/opt/hpc/etc/pools.json'; d = json.load(open(p)); "
            f"d['tuning'] = {TUNING}; json.dump(d, open(p, 'w'))"
        )
        self.management(f"python3 -c {shlex.quote(change)} && systemctl restart hpc-elastic")

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def submit(self, body: str, *options: str) -> str:
        """Submit a job from the login node; its output is `out-<job>.txt`."""
        script = f"#!/bin/bash\n#SBATCH --time=10 --output=out-%j.txt --open-mode=append\n{body}\n"
        self.user("cat > job.sh", script)
        return self.user(f"sbatch --parsable {' '.join(options)} job.sh").strip()

    def output(self, job: str) -> str:
        return self.user(f"cat out-{job}.txt")

    def state(self, job: str) -> str:
        """As sacct has it, e.g. `COMPLETED`."""
        return self.management(f"sacct -X -n -P -j {job} -o state").strip()

    def running(self, job: str) -> bool:
        return self.queue(job) == "RUNNING"

    def queue(self, job: str) -> str:
        return self.try_management(f"squeue -h -j {job} -o %T").stdout.strip()

    def now(self, job: str) -> None:
        """Let a requeued job start at once; slurmctld keeps it back for two minutes."""
        self.try_management(f"scontrol update JobId={job} StartTime=now")

    def completed(self, job: str, seconds: int = 120) -> None:
        self.until(lambda: self.state(job) == "COMPLETED", f"job {job} to complete", seconds)

    def started(self, job: str, seconds: int = 100) -> None:
        self.until(lambda: self.running(job), f"job {job} to run", seconds)

    def reason(self, pattern: str, seconds: int) -> re.Match[str]:
        """Wait until `sinfo -R` has a line like this."""
        found: list[re.Match[str]] = []
        self.until(
            lambda: found.extend(m for m in [re.search(pattern, self.reasons(), re.M)] if m) or found,
            f"the reason {pattern!r} in sinfo -R",
            seconds,
        )
        return found[0]

    def reasons(self) -> str:
        return self.management("sinfo -R -h -o '%n %E'")

    def until(self, condition: Callable[[], object], what: str, seconds: int) -> None:
        """Wait, and tell all that is of use where it takes too long."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                seen = self.try_management(
                    "systemctl --failed --no-pager; systemctl list-jobs --no-pager; "
                    "systemctl status --no-pager -n 8 slurmctld slurmdbd mariadb munge; "
                    "squeue -a; scontrol show node -o | cut -c1-400; sinfo -R; "
                    "journalctl -u hpc-elastic --no-pager -n 40 -o short; tail -40 /var/log/slurm/slurmctld.log"
                )
                raise AssertionError(f"waited {seconds} s for {what}\n{seen.stdout}{seen.stderr}\n{self.nodes()}")
            time.sleep(1)

    # -- the cloud -----------------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, str]:
        """Living compute nodes by name -> instance id."""
        found = [item for item in self.cloud.instances() if item["tags"].get("hpc:role") == "compute"]
        return {item["name"]: item["id"] for item in found}

    def instance(self, name: str) -> str:
        return str(self._item(name)["id"])

    def status(self, name: str) -> str:
        """As DescribeInstances has it, e.g. `Running`."""
        return str(self._item(name)["status"])

    def _item(self, name: str) -> dict[str, Any]:
        """An instance by its name, which has the cluster's in front for the long-lived ones."""
        return next(i for i in self.cloud.instances() if i["name"] in (name, f"{CLUSTER['name']}-{name}"))

    def emptied(self) -> None:
        """Without waiting for idle nodes: they are powered down now."""
        idle = self.management("sinfo -h -N -t idle -o '%n %T' | grep -v '~' || true").splitlines()
        for line in idle:
            self.try_management(f"scontrol update NodeName={line.split()[0]} State=POWER_DOWN")
        self.until(lambda: not self.nodes(), "all nodes to be released", 60)

    def settled(self, seconds: int = 90) -> None:
        """Until the cluster is empty again: no job, no node, none out of use."""
        empty = "squeue -h; sinfo -h -N -o '%n %T' | grep -v 'idle~' || true"
        self.until(lambda: not self.nodes() and not self.management(empty).strip(), "all nodes to be released", seconds)

    @property
    def ecs(self) -> Client:
        return Client(self._config())

    @property
    def nas(self) -> NasClient:
        return NasClient(self._config())

    def _config(self) -> Any:
        record, kind = self.cloud.record, Config
        return kind(
            region_id=REGION,
            endpoint=self.cloud.endpoint,
            protocol="http",
            access_key_id=record.access_key_id,
            access_key_secret=record.access_key_secret,
        )

    def settings(self) -> dict[str, Any]:
        """pools.json as the daemon has it."""
        found: dict[str, Any] = json.loads(self.management("cat /opt/hpc/etc/pools.json"))
        return found

    def console(self, instance_id: str) -> str:
        request = ecs.GetInstanceConsoleOutputRequest(region_id=REGION, instance_id=instance_id)
        return base64.b64decode(self.ecs.get_instance_console_output(request).body.console_output).decode()

    # -- faults --------------------------------------------------------------------------------------------------------

    def namespace(self) -> str | None:
        """Network namespace of the VPC."""
        prefix = Names.of(cloud_dir()).namespace("vpc-")
        return next((path.name for path in Path("/run/netns").glob(f"{prefix}*")), None)

    @contextmanager
    def mirror_off(self) -> Iterator[None]:
        """The package mirror refuses connections."""
        namespace = self.namespace()
        assert namespace is not None
        block_mirror(namespace)
        try:
            yield
        finally:
            unblock_mirror(namespace)

    @contextmanager
    def mirror_off_from_the_start(self) -> Iterator[None]:
        """The same, as soon as the VPC is there."""
        stop, found = threading.Event(), []

        def watch() -> None:
            while not stop.wait(0.1):
                if (namespace := self.namespace()) is not None:
                    block_mirror(namespace)
                    found.append(namespace)
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            for namespace in found:
                unblock_mirror(namespace)

    @contextmanager
    def nas_denied(self) -> Iterator[None]:
        """The access group of the file system names nobody: what is mounted stays, nothing else mounts."""
        listed = self.nas.describe_access_groups(nas.DescribeAccessGroupsRequest()).body
        (group,) = [g for g in listed.access_groups.access_group if g.access_group_name != "DEFAULT_VPC_GROUP_NAME"]
        name, kind = group.access_group_name, "standard"
        request = nas.DescribeAccessRulesRequest(access_group_name=name, file_system_type=kind)
        rules = self.nas.describe_access_rules(request).body.access_rules.access_rule
        for rule in rules:
            self.nas.delete_access_rule(
                nas.DeleteAccessRuleRequest(
                    access_group_name=name, access_rule_id=rule.access_rule_id, file_system_type=kind
                )
            )
        try:
            yield
        finally:
            for rule in rules:
                self.nas.create_access_rule(
                    nas.CreateAccessRuleRequest(
                        access_group_name=name,
                        source_cidr_ip=rule.source_cidr_ip,
                        rwaccess_type=rule.rwaccess,
                        user_access_type=rule.user_access,
                        priority=rule.priority,
                        file_system_type=kind,
                    )
                )

    @contextmanager
    def controller_unreachable(self) -> Iterator[None]:
        """No packet of a compute node reaches slurmctld, so that no slurmd registers."""
        login = self.management("getent hosts login-0").split()[0]
        table = "inet unreachable"
        rules = table_of(table, f"iifname != lo ip saddr != {login} tcp dport 6817 drop")
        self.management(f"printf %s {shlex.quote(rules)} | nft -f -")
        try:
            yield
        finally:
            self.management(f"nft delete table {table}")


def table_of(name: str, rule: str) -> str:
    """An nftables table with one rule for what comes in."""
    return f"table {name} {{\n chain c {{\n  type filter hook input priority 0\n  {rule}\n }}\n}}\n"


def block_mirror(namespace: str) -> None:
    rules = table_of("inet no_mirror", f"ip daddr {addresses.MIRROR} tcp dport 80 reject with tcp reset")
    subprocess.run(["ip", "netns", "exec", namespace, "nft", "-f", "-"], input=rules, text=True, check=True)


def unblock_mirror(namespace: str) -> None:
    subprocess.run(["ip", "netns", "exec", namespace, "nft", "delete", "table", "inet", "no_mirror"], check=True)


def _run(words: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [words[0], "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", *words[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(words, 255, "", str(error))


def _text(call: Callable[[], subprocess.CompletedProcess[str]], command: str) -> str:
    """Output of a command that has to succeed; a connection that is not made is tried again."""
    for _ in range(3):
        done = call()
        if done.returncode != 255:
            break
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
