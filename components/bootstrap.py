"""Setting up the long-lived nodes: the bundle is copied to them and the bootstrap scripts run, over SSH.

Management nodes have no public address: they are reached through the first login node. Whatever a script says ends in
the Pulumi log, and its last line is the reason when it fails.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pulumi
from pulumi_command import remote

from hpc.catalog import Catalog, load_catalog
from hpc.paths import cache_dir
from hpc.slurm import layout
from hpc.slurm.bundle import Bundle, build_bundle
from hpc.slurm.facts import Facts
from hpc.slurm.mounts import mounts_of
from hpc.slurm.pools import elastic_settings
from hpc.slurm.profile import CLOUD, HostProfile
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import login_names, management_names

#: How often a connection is tried, and how long each try may take (s). A node answers SSH within two minutes of its
#: start, and may drop the first connections while cloud-init makes its host keys.
DIAL_ATTEMPTS = 60
DIAL_TIMEOUT = 15

#: Longest run of a script: packages, MPI stacks and a database are installed in it.
TIMEOUT = "40m"


@dataclass(frozen=True, slots=True)
class BootstrapArgs:
    """Arguments of `Bootstrap`.

    Attributes:
        spec: the cluster.
        facts: what is known once the resources exist.
        management: private addresses of the management nodes, the primary first.
        login: addresses at which the login nodes are reached from here, in the order of their names.
        private_key: OpenSSH private key; secret.
        munge_key: key of the cluster's authentication, base64; secret.
        database_password: password of the accounting database; secret.
        catalog: instance types and prices.
        user: account that SSH logs in as; anybody but root needs sudo without a password.
        profile: hosts of the cloud or of the local cloud.
        bundle_folder: where the bundle is written on this machine.
    """

    spec: ClusterSpec
    facts: pulumi.Output[Facts]
    management: tuple[pulumi.Input[str], ...]
    login: tuple[pulumi.Input[str], ...]
    private_key: pulumi.Input[str]
    munge_key: pulumi.Input[str]
    database_password: pulumi.Input[str]
    catalog: Catalog = field(default_factory=load_catalog)
    user: str = "root"
    profile: HostProfile = CLOUD
    bundle_folder: Path = field(default_factory=lambda: cache_dir() / "bundles")


class Bootstrap(pulumi.ComponentResource):
    """Nodes set up in order: the first management node, its backup, then the login nodes.

    A script runs again when a part of the bundle or a fact changes; the triggers in the preview name the parts.

    Attributes:
        bundle: what was copied.
        commands: the commands by host name, to be waited for.
    """

    bundle: Bundle
    commands: Mapping[str, remote.Command]

    def __init__(self, name: str, args: BootstrapArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self.bundle = build_bundle(args.spec, args.catalog, args.bundle_folder, args.profile)
        super().__init__("hpc:bootstrap:Bootstrap", name, {"parts": dict(self.bundle.parts)}, opts)
        public = pulumi.Output.from_input(args.facts).apply(lambda facts: public_items(args.spec, facts))
        secret: pulumi.Output[str] = pulumi.Output.all(
            facts=args.facts,
            munge=pulumi.Output.secret(args.munge_key),
            password=pulumi.Output.secret(args.database_password),
        ).apply(
            lambda known: (
                public_items(args.spec, known["facts"])
                + management_items(args.spec, args.catalog, known["facts"], known["munge"], known["password"])
            )
        )
        commands: dict[str, remote.Command] = {}
        proxied = bool(args.login)
        for index, host in enumerate(management_names(args.spec)):
            connection = _connection(args, args.management[index], proxied=proxied)
            arguments = [] if index == 0 else ["--backup"]
            stdin = secret if index == 0 else public
            commands[host] = self._run(name, host, "management.sh", arguments, connection, stdin, args, commands)
        for index, host in enumerate(login_names(args.spec)):
            connection = _connection(args, args.login[index], proxied=False)
            commands[host] = self._run(name, host, "login.sh", [], connection, public, args, commands)
        self.commands = commands
        self.register_outputs({"bundle": self.bundle.digest})

    def _run(
        self,
        name: str,
        host: str,
        script: str,
        arguments: list[str],
        connection: remote.ConnectionArgs,
        stdin: pulumi.Output[str],
        args: BootstrapArgs,
        before: Mapping[str, remote.Command],
    ) -> remote.Command:
        home = "/root" if args.user == "root" else f"/home/{args.user}"
        archive = f"{home}/hpc-bundle.tar.gz"
        options = pulumi.ResourceOptions(
            parent=self,
            custom_timeouts=pulumi.CustomTimeouts(create=TIMEOUT, update=TIMEOUT),
        )
        copy = remote.CopyToRemote(
            f"{name}-{host}-bundle",
            connection=connection,
            source=pulumi.FileAsset(str(self.bundle.path)),
            remote_path=archive,
            triggers=[self.bundle.digest],
            opts=options,
        )
        return remote.Command(
            f"{name}-{host}",
            connection=connection,
            create=script_command(args.user, archive, script, arguments),
            # A change of a trigger runs the command again; the preview shows which part it was.
            triggers=self.bundle.triggers(),
            stdin=stdin,
            # Servers do not take variables from clients (AcceptEnv), and the last output is of no use.
            add_previous_output_in_env=False,
            opts=pulumi.ResourceOptions.merge(
                options, pulumi.ResourceOptions(depends_on=[copy, *before.values()], delete_before_replace=True)
            ),
        )


def script_command(user: str, archive: str, script: str, arguments: list[str]) -> str:
    """The remote command: unpack the scripts, run one of them with the bundle and this command's stdin."""
    bundle = ["--bundle", archive] if script == "management.sh" else []
    words = " ".join(shlex.quote(word) for word in (*bundle, *arguments))
    inner = (
        "set -e; work=$(mktemp -d); trap 'rm -rf \"$work\"' EXIT; "
        f'tar -xzf {shlex.quote(archive)} -C "$work" bootstrap; bash "$work/bootstrap/{script}" {words}'
    ).rstrip()
    return inner if user == "root" else f"sudo -n bash -c {shlex.quote(inner)}"


def public_items(spec: ClusterSpec, facts: Facts) -> str:
    """Input of every script: what is known at run time and is no secret, one `NAME BASE64` line each."""
    mounts = mounts_of(spec, facts.mounts)
    return _lines(
        {
            "facts.env": facts.shell(),
            "facts.json": facts.to_json(),
            "hosts.static": facts.hosts(),
            "mounts": "".join(f"{mount.path} {mount.source} {mount.options}\n" for mount in mounts),
            "share": layout.software_storage(spec).mount,
        }
    )


def management_items(spec: ClusterSpec, catalog: Catalog, facts: Facts, munge_key: str, password: str) -> str:
    """Input of the first management node beside `public_items`: the elastic daemon's settings, and the secrets."""
    return _lines({"pools.json": elastic_settings(spec, catalog, facts), "database.password": password}) + (
        # The key is bytes, and base64 already.
        f"munge.key {munge_key.strip()}\n"
    )


def _lines(items: Mapping[str, str]) -> str:
    return "".join(f"{name} {base64.b64encode(text.encode()).decode()}\n" for name, text in items.items())


def _connection(args: BootstrapArgs, host: pulumi.Input[str], *, proxied: bool) -> remote.ConnectionArgs:
    proxy = (
        remote.ProxyConnectionArgs(
            host=args.login[0],
            user=args.user,
            private_key=args.private_key,
            dial_error_limit=DIAL_ATTEMPTS,
            per_dial_timeout=DIAL_TIMEOUT,
        )
        if proxied
        else None
    )
    return remote.ConnectionArgs(
        host=host,
        user=args.user,
        private_key=args.private_key,
        dial_error_limit=DIAL_ATTEMPTS,
        per_dial_timeout=DIAL_TIMEOUT,
        proxy=proxy,
    )
