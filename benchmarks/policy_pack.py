"""The policy pack: its start, 1,000 resources, and a preview of the local stack with it against one without.

Baselines of the same run: an interpreter that imports pulumi_policy and nothing else; a pack with one empty rule; a
bare preview by the engine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from hpc.engine.cli import find_cli
from hpc.engine.project import Workspace
from hpc.paths import PROJECT_ROOT

sys.path[:0] = [str(PROJECT_ROOT / "tests" / "policies")]

from analysis import PACK, state_of  # noqa: E402
from policy_cases import SOURCES, around, resource  # noqa: E402

from policies import kinds  # noqa: E402

EMPTY = """
import sys
from pulumi_policy import *
nothing = ResourceValidationPolicy(name="nothing", description="d", validate=lambda a, r: None)
PolicyPack(name="empty", policies=[nothing])
"""


def median(run: Callable[[], object], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def python(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, check=True)


def analyze(state: Path, pack: Path) -> None:
    cli = find_cli()
    if cli is None:
        raise SystemExit("no Pulumi engine: python -m hpc.engine path")
    workspace = Workspace(stack="dev", stack_file=PROJECT_ROOT / "Pulumi.dev.yaml", cli=cli)
    environment = {**os.environ, **workspace.variables(), "HPC_PYTHON": sys.executable}
    command = [str(cli), "policy", "analyze", "--file", str(state), "--policy-pack", str(pack)]
    done = subprocess.run(command, cwd=state.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def state(folder: Path, count: int) -> Path:
    """A stack with `count` resources more than the smallest, of the types that have most rules."""
    types = (kinds.GROUP_RULE, kinds.INSTANCE, kinds.DISK, kinds.TEMPLATE)
    parent = around()[0].urn
    more = [
        resource(types[i % len(types)], f"r-{i}", _sources=SOURCES.get(types[i % len(types)], {}), _parent=parent)
        for i in range(count)
    ]
    file = folder / f"state-{count}.json"
    file.write_text(json.dumps(state_of([*around(), *more])))
    return file


def empty_pack(folder: Path) -> Path:
    pack = folder / "empty"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("name: empty\nruntime: python\nversion: 0.0.1\n")
    (pack / "__main__.py").write_text(EMPTY)
    program = pack / "analyzer"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{pack}" "$@"\n')
    program.chmod(0o755)
    return program


def preview() -> None:
    """Bare preview, preview with the pack, and the whole gate, of the local stack in a cloud of its own (API only)."""
    from hpc.deploy.local import cloud_dir
    from hpc.deploy.session import open_session
    from hpc.paths import cache_dir
    from hpc.preview.environment import environment_of
    from hpc.preview.run import preview_session
    from hpc.preview.surroundings import PACK_PROGRAM
    from localcloud.api.launch import stop

    folder = Path(tempfile.mkdtemp(prefix="hpc-bench-"))
    os.environ["HPC_CACHE_DIR"] = str(cache_dir())
    os.environ["HPC_STATE_DIR"] = str(folder)
    config = [environment_of("local").file]
    try:
        with ExitStack() as stack:
            file = PROJECT_ROOT / "Pulumi.local.yaml"
            session = stack.enter_context(open_session(file, progress=lambda line: None, hosts=False))
            run = session.deployment.preview
            run()
            bare = median(run, 5)
            packed = median(lambda: run(policy_packs=[PACK_PROGRAM], policy_configs=config), 5)
            gate = median(lambda: preview_session(session), 5)
    finally:
        stop(cloud_dir())
        shutil.rmtree(folder, ignore_errors=True)
    print(f"preview of the local stack: {bare:.2f} s bare, {packed:.2f} s with the pack ({packed / bare - 1:+.0%}),")
    print(f"  {gate:.2f} s hpc preview's gate ({gate / packed - 1:+.0%} over the preview with the pack)")


def main() -> None:
    nothing = median(lambda: python("import pulumi_policy"))
    whole = "from policies.later import load_later; load_later(); from policies.pack import policies; policies()"
    full = median(lambda: python(f"{whole}; import policies.serve"))
    print(f"start: {nothing:.2f} s pulumi_policy alone, {full:.2f} s the pack ({full - nothing:+.2f} s)")
    folder = Path(tempfile.mkdtemp(prefix="hpc-bench-"))
    try:
        empty = empty_pack(folder)
        start = {}
        for count in (0, 100, 1000):
            file = state(folder, count)
            floor, ours = (median(partial(analyze, file, pack), 5) for pack in (empty, PACK))
            start = start or {"floor": floor, "ours": ours}
            print(f"analyze, {count:5} resources: {floor:.2f} s a pack with one empty rule, {ours:.2f} s this pack")
        over, over_floor = ours - start["ours"], floor - start["floor"]
        print(f"1,000 resources over the start: {over:.2f} s this pack (bar 2.00), {over_floor:.2f} s the empty one;")
        print(f"  load {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    preview()


if __name__ == "__main__":
    main()
