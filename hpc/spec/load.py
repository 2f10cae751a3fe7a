"""From a stack file, or from the value of `hpc:cluster`, to a spec and everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from hpc.errors import CannotRunError
from hpc.findings import Finding, FindingsError, has_errors
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import finding, needs
from hpc.spec.paths import Places, join, under, without_indexes
from hpc.spec.plain import LEFT_OUT, Copier, TooLargeError, compact, reached
from hpc.spec.problems import closest, problem, suggestion
from hpc.spec.yaml_reader import MAX_BYTES, read_yaml

#: Key of a stack file's `config` that holds the cluster, and the provider's key for the region.
CLUSTER_KEY = "hpc:cluster"
REGION_KEY = "alicloud:region"

#: Most findings about the form of a file that are shown one by one.
MAX_SHOWN = 100

#: What stands in for a required part that is missing or unusable, so that the rest can still be checked. Findings that
#: follow from it are left out, and the file is refused anyway.
_STAND_INS: dict[str, Any] = {
    "name": "cluster",
    "region": "cn-hangzhou",
    "zones": ["cn-hangzhou-j"],
    "pools": [{"name": "pool", "instance_types": ["ecs.c8ae.large"]}],
    "pools.name": "pool",
    "pools.instance_types": ["ecs.c8ae.large"],
    "storage.mount": "/home",
}

# Each round mends at least one place or it is the last.
_MOST_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class LoadedStack:
    """What was read from a stack file.

    Attributes:
        spec: the cluster, or None where there is nothing to make one of. Where `findings` has errors, the parts that
            could not be read have their defaults or stand-ins: good for further checks, not for use.
        findings: what is wrong with the form of the file; `relevant` adds what checks of `spec` say.
        stack: name of the stack, from the file's name, or empty.
        configured_region: `alicloud:region` of the stack, or None.
        source: the file, or None.
        left_out: paths of what could not be read.
    """

    spec: ClusterSpec | None
    findings: tuple[Finding, ...]
    stack: str = ""
    configured_region: str | None = None
    source: Path | None = None
    left_out: tuple[str, ...] = ()
    _kept: Mapping[str, list[int]] = field(default_factory=dict)
    _written: Any = None

    def relevant(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Findings of checks of `spec` in the terms of the file.

        Positions in lists are those of the file, values are as the user wrote them, and findings that merely follow
        from parts that could not be read are left out.
        """
        out = []
        for found in findings:
            path = self._original(found.path)
            if not self._follows(found.code, path):
                out.append(replace(found, path=path, value=self._as_written(path, found.value)))
        return tuple(out)

    def _original(self, path: str) -> str:
        """The path with positions counted as in the file."""
        if not self._kept:
            return path
        done = ""
        for part in re.split(r"(\[\d+\])", path):
            positions = self._kept.get(done, []) if part.startswith("[") else []
            index = int(part[1:-1]) if positions else 0
            done += f"[{positions[index]}]" if index < len(positions) else part
        return done

    def _follows(self, code: str, path: str) -> bool:
        if not self.left_out:
            return False
        exact, anywhere = self._gone
        if exact.touched(path):
            return True
        relied_on = (_beside(path, part) for part in needs(code))
        return any((exact if "[" in part else anywhere).touched(part) for part in relied_on)

    @property
    def _gone(self) -> tuple[Places, Places]:
        return _places(self.left_out)

    def _as_written(self, path: str, value: Any) -> Any:
        if value is None or isinstance(value, list | tuple | dict):
            return value
        parts = [int(index) if index else key for index, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)]
        written = reached(self._written, parts)
        return value if written is LEFT_OUT or isinstance(written, list | dict) else written


@lru_cache(maxsize=1)
def _places(left_out: tuple[str, ...]) -> tuple[Places, Places]:
    """What was left out, with and without positions in lists."""
    return Places(left_out), Places(without_indexes(path) for path in left_out)


def _beside(path: str, part: str) -> str:
    """`pools.max` as a finding at `path` means it: of the same pool where the finding is on one, else of any."""
    entry = re.match(r"(\w+)\[\d+\]", path)
    return entry[0] + part[len(entry[1]) :] if entry and part.startswith(f"{entry[1]}.") else part


def load_stack_file(path: Path) -> LoadedStack:
    """Read a stack file (`Pulumi.<stack>.yaml`).

    Whatever is in the file ends as findings. The effort is bounded: files above 1 MiB are refused unread.

    Raises:
        CannotRunError: HPC001, the file cannot be opened.
    """
    match = re.fullmatch(r"Pulumi\.(.+)\.ya?ml", path.name)
    stack = match[1] if match else ""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotRunError(
            f"the stack file {path} cannot be read: {reason}", code="HPC001", fix="check the path and its permissions"
        ) from error
    document, findings = read_yaml(data)
    # Paths of the reader start at the document; those of findings start at the cluster.
    findings = _shortened(replace(found, path=_inside_cluster(found.path)) for found in findings)
    gone = tuple(found.path for found in findings if found.path and found.code in ("HPC005", "HPC007", "HPC008"))
    value, region, problems = _cluster_of(document) if document is not None or not findings else (None, None, ())
    findings = (*findings, *problems)
    if value is None:
        return LoadedStack(None, findings, stack, region, path)
    return _parsed(value, findings, gone, stack=stack, configured_region=region, source=path)


def parse_cluster(value: object, *, configured_region: str | None = None) -> LoadedStack:
    """Read the value of `hpc:cluster`; never raises for what is in it.

    Args:
        value: a plain mapping, or its text as JSON or YAML.
        configured_region: `alicloud:region` of the stack, or None.
    """
    return _parsed(value, (), (), configured_region=configured_region)


def require(loaded: LoadedStack, findings: Iterable[Finding] = ()) -> ClusterSpec:
    """The spec of a stack that must be free of errors.

    Args:
        loaded: what was read.
        findings: what the checks said (already in the terms of the file).

    Raises:
        FindingsError: a finding of either is an error; it carries them all.
    """
    found = tuple(dict.fromkeys((*loaded.findings, *findings)))
    if loaded.spec is None or has_errors(found):
        raise FindingsError(found)
    return loaded.spec


def _shortened(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    found = tuple(findings)
    return (*found[:MAX_SHOWN], *_uncounted(len(found) - MAX_SHOWN))


def _uncounted(more: int) -> tuple[Finding, ...]:
    """A finding that stands for those that are not shown, if there are any."""
    return (finding("HPC038", "", more, f"{more} more findings of this kind are not shown"),) if more > 0 else ()


def _inside_cluster(path: str) -> str:
    base = join("config", CLUSTER_KEY)
    if under(path, base):
        return path[len(base) :].removeprefix(".")
    return path


def _cluster_of(document: Any) -> tuple[Any, str | None, tuple[Finding, ...]]:
    """The value of `hpc:cluster` and `alicloud:region` of a stack file's document."""
    if not isinstance(document, dict):
        return None, None, (finding("HPC009", "", None, "the file is not a mapping with the key config"),)
    config = document.get("config")
    if not isinstance(config, dict):
        said = "the key config is missing" if config is None else "config is not a mapping"
        return None, None, (finding("HPC009", "config", None, said),)
    region = config.get(REGION_KEY)
    problems: tuple[Finding, ...] = ()
    if region is not None and not isinstance(region, str):
        problems = (finding("HPC032", join("config", REGION_KEY), None, "must be text such as cn-hangzhou"),)
        region = None
    if config.get(CLUSTER_KEY) is None:
        meant = closest(CLUSTER_KEY, (key for key in list(config)[:1000] if not key.startswith("alicloud:")))
        fix = f"rename {meant[:80]} to {CLUSTER_KEY}" if meant and meant != CLUSTER_KEY else None
        return None, region, (*problems, finding("HPC009", "config", None, f"the key {CLUSTER_KEY} is missing", fix))
    return config[CLUSTER_KEY], region, problems


def _parsed(
    value: object,
    findings: tuple[Finding, ...],
    gone: tuple[str, ...],
    *,
    stack: str = "",
    configured_region: str | None = None,
    source: Path | None = None,
) -> LoadedStack:
    if isinstance(value, str):
        value, more = read_yaml(value.encode("utf-8", "backslashreplace"))
        findings = (*findings, *more)
    where = {"stack": stack, "configured_region": configured_region, "source": source}
    if not isinstance(value, Mapping):
        if not has_errors(findings):
            findings = (*findings, finding("HPC009", "", None, f"{CLUSTER_KEY} is not a section of keys and values"))
        return LoadedStack(None, findings, **where)  # type: ignore[arg-type]
    copier = Copier()
    try:
        tree = copier.copy(value)
    except TooLargeError as error:
        return LoadedStack(None, (*findings, *_shortened(copier.findings), error.found), **where)  # type: ignore[arg-type]
    mender = _Mender(tree, [*gone, *copier.left_out])
    spec = mender.mend()
    findings = (*findings, *_shortened(copier.findings), *mender.shown())
    if spec and configured_region and not mender.lost("region") and configured_region != spec.region:
        findings = (
            *findings,
            finding(
                "HPC104",
                "region",
                spec.region,
                f"the cluster is in {spec.region}, but {REGION_KEY} of the stack is {configured_region[:80]}",
            ),
        )
    return LoadedStack(spec, findings, left_out=tuple(mender.left_out), _kept=mender.kept, _written=tree, **where)  # type: ignore[arg-type]


class _Mender:
    """Finds everything that is wrong with the form of a cluster by taking it out until the rest is in order."""

    def __init__(self, tree: dict[str, Any], left_out: list[str]) -> None:
        self.tree = tree
        self.left_out = left_out
        self.findings: list[Finding] = []
        self.kept: dict[str, list[int]] = {}
        self._more = 0

    def lost(self, path: str) -> bool:
        """Whether the part at `path` could not be read."""
        return Places(self.left_out).touched(path)

    def shown(self) -> tuple[Finding, ...]:
        """The findings, with a last one that counts those that are not shown."""
        return (*self.findings, *_uncounted(self._more))

    def mend(self) -> ClusterSpec | None:
        """Take out what is wrong, note it, and return what the rest makes."""
        for _ in range(_MOST_ROUNDS):
            self.kept = {}
            data = compact(self.tree, "", self.kept)
            try:
                return ClusterSpec.model_validate(data)
            except ValidationError as error:
                self._take_out(error.errors(include_url=False, include_input=False))
        return None

    def _take_out(self, errors: list[Any]) -> None:
        places = [(self._place(error["loc"]), error) for error in errors]
        parents = {join("", *place[:end]) for place, _ in places for end in range(len(place))}
        known = Places(self.left_out)
        # Where entries of a list are wrong, that too few of them are right is no finding of its own.
        places = [
            (place, error) for place, error in places if error["type"] != "too_short" or join("", *place) not in parents
        ]
        for place, error in places:
            path = join("", *place)
            self._note(error, place, path, follows=known.touched(path))
        # From the inside out, so that what is around a wrong value is there when its turn comes.
        inside_out = sorted(places, key=lambda pair: len(pair[0]), reverse=True)
        new = [gone for place, error in inside_out for gone in self._remove(error, place, join("", *place))]
        self.left_out = list(dict.fromkeys((*self.left_out, *new)))

    def _place(self, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Where an error is in the tree: positions of the file, marks of pydantic left out."""
        place: tuple[str | int, ...] = ()
        for part in loc:
            if part == "[key]":
                break
            if isinstance(part, int):
                positions = self.kept.get(join("", *place))
                place = (*place, positions[part] if positions else part)
            else:
                place = (*place, part)
        return place

    def _note(self, error: Any, place: tuple[str | int, ...], path: str, *, follows: bool) -> None:
        if follows:
            return
        if len(self.findings) >= MAX_SHOWN:
            self._more += 1
            return
        value = place[-1] if "[key]" in error["loc"] else reached(self.tree, place)
        found = problem({**error, "loc": place}, path, None if value is LEFT_OUT else value)
        # A section or list is too long to show.
        self.findings.append(replace(found, value=None) if isinstance(value, dict | list) else found)

    def _remove(self, error: Any, place: tuple[str | int, ...], path: str) -> list[str]:
        """Take the place out of the tree; returns the paths that are gone by that."""
        parent, last = reached(self.tree, place[:-1]), place[-1]
        if parent is LEFT_OUT:
            return []  # already gone with what was around it
        stand_in = _STAND_INS.get(without_indexes(path))
        if stand_in is not None and isinstance(parent, dict):
            parent[last] = _placed(stand_in, place)
            return [path]
        if isinstance(parent, list):
            parent[cast(int, last)] = LEFT_OUT
        else:
            parent.pop(last, None)
        if error["type"] == "extra_forbidden":
            meant = suggestion(place)
            return [join("", *place[:-1], meant)] if meant and meant not in parent else []
        return [path]


def _placed(stand_in: Any, place: tuple[str | int, ...]) -> Any:
    """A stand-in that does not clash with that of another list entry."""
    position = next((part for part in place if isinstance(part, int)), None)
    if position is None or not isinstance(stand_in, str):
        return deepcopy(stand_in)
    return f"{stand_in}-{position}-left-out"
