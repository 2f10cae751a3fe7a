"""Where the time of `pulumi preview` and `pulumi up` of the dev stack goes: engine, SDK, providers, own code.

Plain `pulumi`, the real provider plugins, a local cloud (API only). Each program does one thing more than the one
before it, so the differences are the shares. The floor is the same engine and providers with an empty program that
imports the same parts of the SDK. Bar: own code at most 0.5 s over the floor in a preview. The engine is called anew
each time; the programs take turns, so that other load meets all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hpc.engine.cli import ensure_cli
from hpc.engine.language import ensure_language_host, path_of_plain_runs
from hpc.engine.plugins import ensure_plugins
from hpc.paths import PROJECT_ROOT, cache_dir

TIMES = 5
UPS = 3
BAR_S = 0.5

#: Programs by what they add to the one before; the last is the project's own.
PROGRAMS: Mapping[str, Path] = {
    "engine and language host (an empty program)": PROJECT_ROOT / "benchmarks" / "programs" / "empty",
    "import of the SDK": PROJECT_ROOT / "benchmarks" / "programs" / "sdk",
    "provider plugins (configured, one call each)": PROJECT_ROOT / "benchmarks" / "programs" / "providers",
    "own code (dev stack: checks, price, all resources)": PROJECT_ROOT,
}

_PROJECT = """\
name: {name}
runtime:
  name: python
  options: {{toolchain: uv, virtualenv: {venv}}}
main: {main}
"""


@dataclass(frozen=True)
class Place:
    """A fresh local cloud with a project for each program.

    Attributes:
        environment: of the commands.
        projects: folder of each program's project.
        stack_file: the dev stack.
    """

    environment: Mapping[str, str]
    projects: Mapping[str, Path]
    stack_file: Path

    def run(self, program: str, *words: str) -> float:
        """Run plain pulumi on a program; s."""
        command = ["pulumi", *words, "--stack", "dev", "--non-interactive", "--suppress-progress"]
        return seconds(command, self.environment, self.projects[program])

    def hpc(self, *words: str) -> float:
        """Run `hpc` on the dev stack; s."""
        command = [str(PROJECT_ROOT / ".venv" / "bin" / "hpc"), words[0], str(self.stack_file), *words[1:]]
        return seconds(command, self.environment, self.stack_file.parent)


def seconds(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


@contextmanager
def fresh(names: Sequence[str]) -> Iterator[Place]:
    from hpc.deploy.local import cloud_dir, ensure_cloud, plain_environment
    from localcloud.api.launch import stop

    folder = Path(tempfile.mkdtemp(prefix="hpc-bench-"))
    os.environ["HPC_STATE_DIR"] = str(folder / "state")
    try:
        environment = {
            **os.environ,
            **plain_environment(ensure_cloud(lambda line: None, hosts=False), lambda line: None),
            "PATH": os.pathsep.join([*path_of_plain_runs(), os.environ["PATH"]]),
            "PYTHONPATH": str(PROJECT_ROOT),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        projects = {}
        for number, name in enumerate(names):
            project = folder / f"project-{number}"
            project.mkdir()
            shutil.copy(PROJECT_ROOT / "Pulumi.dev.yaml", project)
            main = os.path.relpath(PROGRAMS[name], project)
            venv = json.dumps(str(PROJECT_ROOT / ".venv"))
            project_name = "hpc" if PROGRAMS[name] == PROJECT_ROOT else f"bench{number}"
            (project / "Pulumi.yaml").write_text(_PROJECT.format(name=project_name, venv=venv, main=main))
            seconds(["pulumi", "stack", "init", "dev"], environment, project)
            projects[name] = project
        yield Place(environment, projects, projects[names[-1]] / "Pulumi.dev.yaml")
    finally:
        stop(cloud_dir())
        shutil.rmtree(folder, ignore_errors=True)


#: What the program does without an engine, in a fresh interpreter that has imported the SDK already.
_ALONE = """
import time, sys, yaml
import pulumi, components.provider
from pulumi_command import local, remote
from components.sdk import ecs, nas, ram, vpc
started = time.perf_counter()
from components.cluster import Cluster, ClusterArgs
from hpc.checks import check_cluster
config = yaml.safe_load(open(sys.argv[1]))["config"]
checked = check_cluster(config["hpc:cluster"], configured_region=config["alicloud:region"])
ready = time.perf_counter()
from components.recording import record
from hpc.catalog import load_catalog
from hpc.plan import catalog_invokes
invokes = catalog_invokes(load_catalog())
registering = time.perf_counter()
made = record(lambda: Cluster(checked.spec.name, ClusterArgs(checked.spec)) and None, invokes=invokes)
print(ready - started, time.perf_counter() - registering, len(made.resources))
"""


def alone() -> tuple[float, float, int]:
    """Imports and checks, registration with a recorder in place of the engine (both s), and resources; medians."""
    file = str(PROJECT_ROOT / "Pulumi.dev.yaml")
    command = [str(PROJECT_ROOT / ".venv" / "bin" / "python"), "-W", "ignore", "-c", _ALONE, file]
    told = [
        subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(TIMES)
    ]
    imports, registering = (statistics.median(float(line[place]) for line in told) for place in (0, 1))
    return imports, registering, int(told[0][2])


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def shares(times: Mapping[str, Sequence[float]]) -> float:
    """Print the shares of one operation; the own code's."""
    before = own = 0.0
    for name, each in times.items():
        median = statistics.median(each)
        own = median - before
        print(f"  {own:6.2f} s  {name}")
        before = median
    print(f"  {before:6.2f} s  in all")
    return own


def previews() -> None:
    names = list(PROGRAMS)
    with fresh(names) as place:
        for name in names:
            place.run(name, "preview")  # warm
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(TIMES):
            for name in names:
                times[name].append(place.run(name, "preview"))
    print(f"pulumi preview of dev, nothing deployed, median of {TIMES} ({load()}):")
    own = shares(times)
    imports, registering, resources = alone()
    print(f"  own code over the floor: {own:.2f} s (bar {BAR_S} s); without engine and plugins:")
    print(f"    {imports:.2f} s imports and checks, {registering:.2f} s to register {resources} resources ({load()})")


def ups() -> None:
    names = list(PROGRAMS)[-2:]
    first: dict[str, list[float]] = {name: [] for name in names}
    again: dict[str, list[float]] = {"pulumi up": [], "hpc up": []}
    for _ in range(UPS):
        with fresh(names) as place:
            for name in names:
                first[name].append(place.run(name, "up", "--yes", "--skip-preview"))
            if not again["hpc up"]:
                place.hpc("up", "--yes")  # warm
            again["pulumi up"].append(place.run(names[-1], "up", "--yes"))
            again["hpc up"].append(place.hpc("up", "--yes"))
    floor, whole = (statistics.median(first[name]) for name in names)
    print(f"pulumi up --skip-preview of dev into an empty cloud, median of {UPS} ({load()}):")
    print(f"  {whole:6.2f} s, {floor:.2f} s of it the floor; the rest is the provider's own waits (5 s a step)")
    plain, ours = (statistics.median(again[name]) for name in again)
    print(f"with nothing to change, preview and up, median of {UPS} ({load()}):")
    print(f"  {plain:6.2f} s  pulumi up, no rules")
    print(f"  {ours:6.2f} s  hpc up, with the rules in both: {ours - plain:+.2f} s")


def main() -> None:
    cli = ensure_cli(lambda line: None)
    missing = [plugin.remedy for plugin in ensure_plugins(cli) if plugin.path is None]
    if missing or ensure_language_host() is None:
        raise SystemExit(f"not measured, as this is missing: {', '.join(missing) or 'the Python language host'}")
    os.environ["HPC_CACHE_DIR"] = str(cache_dir())
    previews()
    ups()


if __name__ == "__main__":
    main()
