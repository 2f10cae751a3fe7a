"""Thin adapter on scontrol: look at nodes, change many of them with one call."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterable, Sequence

from ClusterShell.NodeSet import NodeSet

from hpc.elastic.nodes import Node, parse_nodes

log = logging.getLogger(__name__)

#: Most nodes of one `scontrol update`, and how long a call may take (s).
NODE_LIMIT = 1000
_TIMEOUT_S = 60


class SlurmError(Exception):
    """scontrol failed or did not answer."""


def folded(nodes: Iterable[str]) -> str:
    """Node names as a hostlist: `mpi-[1-40]`."""
    return str(NodeSet.fromlist(sorted(nodes)))


def expanded(hostlist: str) -> tuple[str, ...]:
    """The node names of a hostlist.

    Raises:
        ValueError: it is no hostlist.
    """
    try:
        return tuple(NodeSet(hostlist))
    except Exception as error:
        raise ValueError(f"{hostlist!r} is not a hostlist: {error}") from error


class Slurm:
    """The controller, through scontrol on this host."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, powered-down ones too (PrivateData=cloud hides those without `--all`)."""
        return parse_nodes(self._run("show", "node", "--all", "--oneliner"))

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

    def comment(self, job: int, text: str) -> None:
        """Tell the user on the job why it waits; a job that is gone is no error."""
        try:
            self._run("update", f"JobId={job}", f"AdminComment={text}")
        except SlurmError as error:
            log.info("no comment on job %s: %s", job, error)

    def _update(self, nodes: Sequence[str], *what: str) -> None:
        ordered = sorted(nodes)
        for start in range(0, len(ordered), NODE_LIMIT):
            self._run("update", f"NodeName={folded(ordered[start : start + NODE_LIMIT])}", *what)

    @staticmethod
    def _run(*arguments: str) -> str:
        try:
            done = subprocess.run(
                ["scontrol", *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SlurmError(f"scontrol {arguments[0]}: {error}") from error
        if done.returncode:
            told = (done.stderr or done.stdout).strip().splitlines()
            raise SlurmError(f"scontrol {' '.join(arguments)}: {told[-1] if told else done.returncode}")
        return done.stdout
