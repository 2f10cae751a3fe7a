"""`hpc local`: the local Alibaba Cloud of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hpc.cli.output import err, out, print_json
from hpc.cli.progress import display
from hpc.cli.stacks import JsonOption
from hpc.errors import CannotRunError, RefusedError

if TYPE_CHECKING:
    from localcloud.api.client import LocalCloud


def register(app: typer.Typer) -> None:
    """Add the command group to the command line."""
    group = typer.Typer(help="The local Alibaba Cloud of this machine.", no_args_is_help=True)
    for command in (start, stop, status, env, reset, set_, logs):
        group.command(command.__name__.rstrip("_"))(command)
    app.add_typer(group, name="local")


def start(
    hosts: Annotated[
        bool | None,
        typer.Option("--hosts/--no-hosts", help="Real hosts, or the API only; hosts where the machine can have them."),
    ] = None,
) -> None:
    """Start it, or find the one that runs."""
    from hpc.deploy.local import ensure_cloud

    with display("local cloud") as shown:
        cloud = ensure_cloud(shown.line, hosts=hosts)
    err().print(f"endpoint {cloud.endpoint}, console {cloud.console_url}")


def stop() -> None:
    """Stop it. What exists in it stays, and is there again after the next start."""
    from hpc.deploy.local import cloud_dir
    from localcloud.api.launch import stop as stop_cloud

    stop_cloud(cloud_dir())
    err().print("the local cloud is stopped")


def status(as_json: JsonOption = False) -> None:
    """Say whether it runs, where, and what exists in it. Exit code 2 if it does not run."""
    cloud = _running()
    counts = cloud.counts()
    if as_json:
        print_json(
            {"endpoint": cloud.endpoint, "console": cloud.console_url, "hosts": cloud.record.hosts, "resources": counts}
        )
        return
    out().print(f"endpoint  {cloud.endpoint}")
    out().print(f"console   {cloud.console_url}")
    out().print(f"instances {'are real hosts' if cloud.record.hosts else 'exist in the API only'}")
    for kind, number in sorted(counts.items()):
        out().print(f"  {number:6} {kind}")
    if not counts:
        out().print("  empty")


def env() -> None:
    """Print the variables by which SDKs and plain `pulumi up -s local` find it: eval "$(hpc local env)".

    With them plain `pulumi` uses the state, the plugins and the language host of `hpc up local`.
    """
    import shlex

    from hpc.deploy.local import plain_environment
    from hpc.engine.language import path_of_plain_runs

    with display("local cloud: variables") as shown:
        variables = plain_environment(_running(), shown.line)
    for name, value in variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
    if folders := path_of_plain_runs():
        typer.echo(f'export PATH={shlex.quote(":".join(folders))}:"$PATH"')


def reset(yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove it whole: its resources, hosts, networks and files, and the state of local stacks. Also after a crash."""
    from hpc.deploy.local import remove_cloud

    if not yes and not typer.confirm("Remove the local cloud and everything in it?", err=True):
        raise RefusedError("you said no", code="HPC014", fix="nothing was changed")
    with display("local cloud: reset") as shown:
        remove_cloud(shown.line)
    err().print("the local cloud is gone")


def set_(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help="Knobs; without any, the knobs as they are are printed."),
    ] = None,
) -> None:
    """Change how it behaves: stock, quotas, throttling, latency, lag, clock.

    `stock[:TYPE[:ZONE[:payg|spot]]]=NUMBER|none`, `quota:vcpus=64`, `clock=+3600` (seconds forward),
    `reclaim=INSTANCE`, or any other knob by its name with a JSON value.
    """
    import json

    cloud = _running()
    for setting in settings or []:
        name, sign, text = setting.partition("=")
        if not sign:
            raise RefusedError(f"{setting!r} is not NAME=VALUE", code="HPC017", fix="write, say, quota:vcpus=64")
        _apply(cloud, name, text)
    print_json(json.loads(json.dumps(cloud.knobs(), default=str)))


def _apply(cloud: LocalCloud, name: str, text: str) -> None:
    import json

    kind, _, rest = name.partition(":")
    try:
        if kind == "stock":
            instance_type, zone, charge = (*[part or "*" for part in rest.split(":")], "*", "*", "*")[:3]
            if charge not in ("payg", "spot", "*"):
                raise ValueError("the charge of a stock is payg or spot")
            number = None if text == "none" else int(text)
            cloud.set_stock(number, instance_type=instance_type, zone=zone, charge=charge)  # type: ignore[arg-type]
        elif kind == "quota":
            cloud.set_quota(**{rest: int(text)})
        elif kind == "clock":
            cloud.advance_clock(float(text))
        elif kind == "reclaim":
            cloud.reclaim(text)
        else:
            try:
                value = json.loads(text)
            except json.JSONDecodeError:
                value = text
            cloud.set(**{name: value})
    except ValueError as error:
        raise RefusedError(
            f"{name}={text}: {error}", code="HPC017", fix="see `hpc local set --help` for what can be set"
        ) from error


def logs(
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 50,
    calls: Annotated[bool, typer.Option("--calls", help="The last API calls instead of the server's log.")] = False,
) -> None:
    """Print the last lines of the server's log, or the last API calls."""
    from hpc.deploy.local import cloud_dir
    from localcloud.api.launch import LOG

    if calls:
        for call in _running().calls()[-lines:]:
            typer.echo(" ".join(f"{key}={value}" for key, value in call.items()))
        return
    file = cloud_dir() / LOG
    if not file.exists():
        raise CannotRunError("there is no log yet", code="HPC016", fix="start it with `hpc local start`")
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
        typer.echo(line)


def _running() -> LocalCloud:
    from hpc.deploy.local import running_cloud

    cloud = running_cloud()
    if cloud is None:
        raise CannotRunError("the local cloud does not run", code="HPC016", fix="start it with `hpc local start`")
    return cloud
