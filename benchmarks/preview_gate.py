"""`hpc preview` of the dev stack against a bare `pulumi preview --policy-pack`: whole commands, from call to exit.

Both run the same engine, provider plugins, program, pack and settings, against a local cloud (API only). The bare one
does without the checks, the price, the comparison with what is deployed, and the report. Bar: at most 20 % more.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc.engine.cli import ensure_cli
from hpc.engine.language import ensure_language_host, path_of_plain_runs
from hpc.engine.plugins import ensure_plugins, pulumi_home
from hpc.paths import PROJECT_ROOT, cache_dir
from hpc.preview.environment import environment_of
from hpc.preview.surroundings import PACK_PROGRAM

TIMES = 7
BAR = 1.20

PROJECT = """\
name: hpc
runtime:
  name: python
  options: {{toolchain: uv, virtualenv: {venv}}}
main: {main}
stackConfigDir: {config}
"""


def seconds(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


def main() -> None:
    from hpc.deploy.local import cloud_dir, cloud_environment, ensure_cloud
    from localcloud.api.launch import stop

    cli = ensure_cli(lambda line: None)
    missing = [plugin.remedy for plugin in ensure_plugins(cli) if plugin.path is None]
    folder = Path(tempfile.mkdtemp(prefix="hpc-bench-"))
    os.environ["HPC_CACHE_DIR"] = str(cache_dir())
    os.environ["HPC_STATE_DIR"] = str(folder / "state")
    try:
        host = ensure_language_host()
        if missing or host is None:
            raise SystemExit(f"not measured, as this is missing: {', '.join(missing) or 'the Python language host'}")
        environment = {
            **os.environ,
            **cloud_environment(ensure_cloud(lambda line: None, hosts=False)),
            "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE": "only for this benchmark",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(pulumi_home()),
            "HPC_PYTHON": sys.executable,
            "PATH": os.pathsep.join([*path_of_plain_runs(), os.environ.get("PATH", "")]),
        }
        stack, project = folder / "stack", folder / "project"
        for new in (stack, project, folder / "backend"):
            new.mkdir()
        file = Path(shutil.copy(PROJECT_ROOT / "Pulumi.dev.yaml", stack))
        relative = {"main": os.path.relpath(PROJECT_ROOT, project), "config": os.path.relpath(stack, project)}
        (project / "Pulumi.yaml").write_text(
            PROJECT.format(venv=json.dumps(str(PROJECT_ROOT / ".venv")), **relative), encoding="utf-8"
        )
        hpc = [str(PROJECT_ROOT / ".venv" / "bin" / "hpc"), "preview", str(file)]
        config = str(environment_of("dev").file)
        bare = [str(cli), "preview", "--stack", "dev", "--non-interactive", "--suppress-progress"]
        bare += ["--policy-pack", str(PACK_PROGRAM), "--policy-pack-config", config]
        seconds(hpc, environment, folder)  # makes the stack
        seconds(bare, environment, project)
        took: dict[str, list[float]] = {"hpc": [], "bare": []}
        for _ in range(TIMES):  # in turns, so that other load meets both
            took["bare"].append(seconds(bare, environment, project))
            took["hpc"].append(seconds(hpc, environment, folder))
    finally:
        stop(cloud_dir())
        shutil.rmtree(folder, ignore_errors=True)
    ours, floor = statistics.median(took["hpc"]), statistics.median(took["bare"])
    print(f"preview of dev, median of {TIMES} (load {os.getloadavg()[0]:.1f}):")
    print(
        f"  {floor:.2f} s pulumi preview --policy-pack, {ours:.2f} s hpc preview: x {ours / floor:.2f} (bar {BAR:.2f})"
    )


if __name__ == "__main__":
    main()
