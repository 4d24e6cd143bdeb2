"""The manifest of a run: a list of the files of its plan and of its results, each with its SHA-256.

    OUT/<experiment>/manifests/<profile>-<seed>.sha256

A run and a merge write it at their end, and look anew only at what they have made themselves and at files that were
changed since it was written, of which a clock that was set back would tell nothing. A page names its SHA-256, and an
archive holds it. Without rankbench, `sha256sum --check manifests/quick-0.sha256` in the folder of the experiment tells
whether the files are those.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time

from rankbench.checks.findings import Finding, failed, not_applicable
from rankbench.core import regular
from rankbench.core.errors import MAKE_ROOM, writing_to
from rankbench.records.archive import sha256_of
from rankbench.records.cells import file_name, file_of_cell
from rankbench.records.plans import Plan
from rankbench.records.store import Store, name_of_plan, write_text

MANIFESTS = "manifests"
ENDING = ".sha256"
_LINE = re.compile(r"([0-9a-f]{64})  ((?:plans|cells)/[^/]+)")
_LARGEST = 64 << 20  # bytes: a list of 400,000 files
_LARGEST_FILE = 512 << 20  # bytes of a file that is listed
_CLOCK = 2.0  # seconds: the times of files may be that coarse
_UNREADABLE = "0" * 64  # stands for the SHA-256 of what is no file that can be read


def path_of(folder: Path, plan: Plan) -> Path:
    """Where the manifest of a plan's run lies in the folder of its experiment."""
    return folder / MANIFESTS / f"{name_of_plan(plan)}{ENDING}"


def files_of_run(store: Store, plan: Plan) -> list[str]:
    """The plan's file and the files of its results, those of other machines' measurements included, by their paths.

    The paths are those within the store's folder.
    """
    path = store.plan_path(plan)
    files = [f"{path.parent.name}/{path.name}"] if path.exists() else []
    names = {file_name(cell) for cell in plan.everything}
    there = set(os.listdir(store.cells)) if store.cells.is_dir() else set()
    for name in there:
        if name.endswith(".json") and file_of_cell(name) in names:
            own = (name, f"{name.removesuffix('.json')}.npz")
            files += [f"{store.cells.name}/{one}" for one in own if one in there]
    return files


def renew(store: Store, plan: Plan, made: Collection[str] = ()) -> set[str]:
    """Write the manifest of this plan's run anew, and those of all stored plans that share cells with it.

    `made` names the results that were just made. What comes back are the names of files of results that these manifests
    listed with another SHA-256.
    """
    keys = {cell.key for cell in plan.everything}
    sharing = [other for other in store.plans() if not keys.isdisjoint(cell.key for cell in other.everything)]
    return {name for other in sharing for name in _write(store, other, made)}


def _write(store: Store, plan: Plan, made: Collection[str]) -> list[str]:
    """Write the manifest of one plan, and name the results that it listed with another SHA-256."""
    with store.plan_alone(plan), writing_to(store.folder, MAKE_ROOM):
        path = path_of(store.folder, plan)
        path.parent.mkdir(exist_ok=True)
        before = _before(path, made)
        digests = _digests(store, plan, before)
        write_text(path, "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())))
    changed = (name for name, digest in digests.items() if before.listed.get(name, digest) != digest)
    return [name for name in changed if name.startswith("cells/")]


def findings(store: Store, plan: Plan) -> Iterator[Finding]:
    """Which files of a run are not those of its manifest: changed, added or dropped since it was written."""
    path = path_of(store.folder, plan)
    try:
        listed = _listed(path)
    except FileNotFoundError:
        yield not_applicable("manifest", "there is none, so a result may have been exchanged: a run or a merge that "
                             "ends writes it")  # fmt: skip
        return
    except (OSError, ValueError):
        yield failed("manifest", f"{path.name} cannot be read", "")
        return
    there = _digests(store, plan)
    changed = [name for name in listed.keys() & there.keys() if listed[name] != there[name]]
    for names, problem in (
        (changed, "was changed since the manifest was written"),
        (there.keys() - listed.keys(), "was added since the manifest was written"),
        (listed.keys() - there.keys(), "is in the manifest, and not in the folder"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield failed("manifest", f"{min(names)}{more}: {problem}", "")


def digest(folder: Path, plan: Plan) -> str:
    """The SHA-256 of the manifest itself; empty where there is none that can be read."""
    try:
        return sha256_of(regular.content(path_of(folder, plan), _LARGEST))
    except OSError:
        return ""


@dataclass(frozen=True)
class _Before:
    """The digests of a manifest, which still hold of files that nobody has changed since it was written."""

    listed: Mapping[str, str]
    written: float
    made: Collection[str] = ()  # names of results that were made since

    def of(self, name: str, folder: Path) -> str | None:
        """The digest of a file that was last changed, or put there, well before the manifest was written."""
        if file_of_cell(name.rpartition("/")[2]) in self.made:
            return None
        try:
            found = os.stat(f"{folder}/{name}")  # of thousands of files `Path` is slow
        except OSError:
            return None
        changed = max(found.st_mtime, found.st_ctime)  # a copy may keep the first, never the second
        return self.listed.get(name) if changed < self.written - _CLOCK else None


def _before(path: Path, made: Collection[str]) -> _Before:
    """The digests of a manifest; none where there is none that can be read."""
    try:
        listed, written = _listed(path), path.stat().st_mtime
    except (OSError, ValueError):
        return _Before({}, 0.0)
    return _Before(listed, written if written <= time() else 0.0, made)  # in the future: the clock was set back since


def _digests(store: Store, plan: Plan, before: _Before = _Before({}, 0.0)) -> dict[str, str]:
    folder = store.folder
    return {name: before.of(name, folder) or _digest(folder / name) for name in files_of_run(store, plan)}


def _digest(path: Path) -> str:
    try:
        return sha256_of(regular.content(path, _LARGEST_FILE))
    except OSError:
        return _UNREADABLE


def _listed(path: Path) -> Mapping[str, str]:
    """The SHA-256 of each file in a manifest; a ValueError if it is not written as one."""
    lines = regular.content(path, _LARGEST).decode().splitlines()
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    if len(found) != len(lines) or len({match[2] for match in found}) < len(found):
        raise ValueError("a line is none of a manifest, or a file is listed twice")
    return {match[2]: match[1] for match in found}
