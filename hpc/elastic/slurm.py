"""Thin adapter on scontrol and squeue: look at nodes, change many of them with one call."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Mapping, Sequence

from hpc.elastic.hostlists import expanded, folded
from hpc.elastic.nodes import Node, parse_nodes

log = logging.getLogger(__name__)

#: Most nodes of one `scontrol update`, and how long a call may take (s).
NODE_LIMIT = 1000
_TIMEOUT_S = 60


class SlurmError(Exception):
    """scontrol or squeue failed or did not answer."""


class Slurm:
    """The controller, through its commands on this host."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, powered-down ones too (PrivateData=cloud hides those without `--all`)."""
        return parse_nodes(self._run("scontrol", "show", "node", "--all", "--oneliner"))

    def down(self, nodes: Sequence[str], reason: str) -> None:
        """Set nodes DOWN; their jobs are requeued."""
        self._update(nodes, "State=DOWN", f"Reason={reason}")

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Let running jobs finish and take no new ones."""
        self._update(nodes, "State=DRAIN", f"Reason={reason}")

    def power_down(self, nodes: Sequence[str]) -> None:
        """Power nodes down at once."""
        self._update(nodes, "State=POWER_DOWN_FORCE")

    def power_up(self, nodes: Sequence[str]) -> None:
        """Power nodes up without a job."""
        self._update(nodes, "State=POWER_UP")

    def resume(self, nodes: Sequence[str]) -> None:
        """Give nodes back to the scheduler."""
        self._update(nodes, "State=RESUME")

    def jobs(self) -> Mapping[int, tuple[str, ...]]:
        """Jobs that wait for their nodes to start -> all of their nodes."""
        text = self._run("squeue", "--noheader", "--states=CONFIGURING", "--format=%A %N")
        rows = [line.split(maxsplit=1) for line in text.splitlines()]
        return {int(row[0]): expanded(row[1]) for row in rows if len(row) == 2 and row[0].isdigit()}

    def tell(self, jobs: Sequence[int], text: str, later: int = 0) -> None:
        """Tell users on their jobs why they wait, and keep these back for `later` s; gone jobs are no error."""
        what = [f"AdminComment={text}", *([f"StartTime=now+{later}"] if later else [])]
        for start in range(0, len(jobs), NODE_LIMIT):
            ids = ",".join(str(job) for job in jobs[start : start + NODE_LIMIT])
            try:
                self._run("scontrol", "update", f"JobId={ids}", *what)
            except SlurmError as error:
                log.info("jobs %s were not told: %s", ids, error)

    def _update(self, nodes: Sequence[str], *what: str) -> None:
        ordered = sorted(nodes)
        for start in range(0, len(ordered), NODE_LIMIT):
            self._run("scontrol", "update", f"NodeName={folded(ordered[start : start + NODE_LIMIT])}", *what)

    @staticmethod
    def _run(*command: str) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise SlurmError(f"{' '.join(command[:2])}: {error}") from error
        if done.returncode:
            told = (done.stderr or done.stdout).strip().splitlines()
            raise SlurmError(f"{' '.join(command)}: {told[-1] if told else done.returncode}")
        return done.stdout
