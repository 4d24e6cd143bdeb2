"""The results of one machine or one commit, out of a folder in which several lie side by side after a merge."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from rankbench.core.errors import UserError
from rankbench.core.regular import copied
from rankbench.records.cells import file_name
from rankbench.records.codec import Unreadable
from rankbench.records.machines import Machine
from rankbench.records.merge import Measurement
from rankbench.records.store import ResultsFolder, Store

_FEWEST = 4  # digits of a fingerprint or commit


def made_by(machine: Machine, asked: str) -> bool:
    """Whether a machine record has a fingerprint or a commit that starts with these digits."""
    commit = machine.git or ""
    names = (machine.fingerprint, commit, commit.rpartition("-g")[2])
    return len(asked) >= _FEWEST and any(name.startswith(asked) for name in names)


def select(source: ResultsFolder, asked: str, target: Path, name: str = "") -> None:
    """Copy what a machine or commit has made, of all experiments or of one, into an empty folder."""
    known: dict[str, None] = {}
    count = 0
    for experiment in [name] if name else source.names():
        store = source.store(experiment)
        everything = list(_measured(store))
        chosen = {file_name(one.result.cell): one for one in everything if made_by(one.result.machine, asked)}
        known |= dict.fromkeys(who for one in everything for who in _names(one.result.machine))
        for file, one in chosen.items():
            _put(one, store.cells / file, target / experiment / "cells" / file)
        if chosen:
            plans = target / experiment / "plans"
            shutil.copytree(store.folder / "plans", plans, copy_function=copied, dirs_exist_ok=True)
        count += len(chosen)
    if not count:
        there = f"there are results of {', '.join(known)}" if known else "there are no results at all"
        raise UserError(f"{source.out} holds no results of a machine or commit {asked!r}", remedy=there)


def _measured(store: Store) -> Iterator[Measurement]:
    """All measurements that can be read, in the order of their times, so that of several the last one is taken."""
    found = []
    for path in store.measurements():
        try:
            found.append(Measurement(path, store.read(path)))
        except Unreadable:
            continue  # the verbs that show the folder itself report such files
    yield from sorted(found, key=lambda one: one.result.finished)


def _names(machine: Machine) -> list[str]:
    return [machine.fingerprint, *([machine.git] if machine.git else [])]


def _put(one: Measurement, own: Path, path: Path) -> None:
    """Copy a measurement as the result of its cell; where its values for users are those of the result, these."""
    path.parent.mkdir(parents=True, exist_ok=True)
    copied(one.path, path)
    for arrays in (one.arrays, own.with_suffix(".npz")):
        if one.counts and arrays.exists():
            copied(arrays, path.with_suffix(".npz"))
            return
