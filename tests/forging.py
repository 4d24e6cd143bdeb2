"""Forgeries: one thing changed in a folder of results or in an archive, with all digests made anew.

The kinds of change come from what is stored: each field of each record, whatever its depth, is changed once. A list
loses its last entry, or has it twice.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rankbench.records.archive import METADATA, sha256_of, write
from rankbench.records.codec import with_digest
from rankbench.records.store import ResultsFolder
from rankbench.report import manifest
from rankbench.report.crate import files_of
from rankbench.report.study import chosen_plan, study

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of change: a file, the first place in it, and what is done there."""

    file: str  # in the results folder
    place: Steps
    change: str  # "other", "shorter" or "twice"

    @property
    def name(self) -> str:
        """The kind by the names of fields alone."""
        fields = [str(step) for step in self.place if isinstance(step, str)]
        return f"{Path(self.file).parent.name}:{'.'.join(fields)}:{self.change}"


def kinds(out: Path) -> Iterator[Kind]:
    """Each kind of change to each record in a folder of results, at the first place where it is possible."""
    seen: set[str] = set()
    for path in sorted(path for path in out.rglob("*.json") if path.name != "known-splits.json"):  # verify reads none
        for place, change in _places(json.loads(path.read_text())):
            kind = Kind(path.relative_to(out).as_posix(), place, change)
            if kind.name not in seen and place not in (("sha256",), ("format",)):
                seen.add(kind.name)
                yield kind


def _places(value: object, at: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """All places in a JSON value, with what can be changed there."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _places(part, (*at, name))
    elif isinstance(value, list):
        if value:
            yield at, "shorter"
            yield at, "twice"
        for number, part in enumerate(value):
            yield from _places(part, (*at, number))
    else:
        yield at, "other"


def forged(out: Path, kind: Kind, target: Path) -> Path:
    """A copy of a folder of results with this change, and with the digest of the changed file made anew."""
    shutil.copytree(out, target)
    path = target / kind.file
    content = json.loads(path.read_text())
    content.pop("sha256")
    _change(content, kind.place, kind.change)
    path.write_text(with_digest(json.dumps(content)))
    renew_manifests(target)
    return target


def renew_manifests(out: Path) -> None:
    """Write the manifests of a folder of results as an honest program does."""
    results = ResultsFolder(out, lambda problem: None, untouched=True)
    for name in results.names():
        for plan in results.store(name).plans():
            manifest.renew(results.store(name), plan)


def _change(content: object, place: Steps, change: str) -> None:
    holder = content
    for step in place[:-1]:
        holder = holder[step]  # type: ignore[index]
    before = holder[place[-1]]  # type: ignore[index]
    changed = {"other": lambda: _other(before), "shorter": lambda: before[:-1], "twice": lambda: [*before, before[-1]]}
    holder[place[-1]] = changed[change]()  # type: ignore[index]


def _other(value: object) -> object:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value is None:
        return "1"
    text = str(value)
    if re.fullmatch(r"[0-9a-f]{16,}", text):
        return f"{'0' if text[0] != '0' else '1'}{text[1:]}"
    swapped = {"ok": "diverged", "diverged": "ok", "failed": "timeout", "budget": "solver", "solver": "budget",
               "higher": "lower", "lower": "higher", "quick": "full", "": "x"}  # fmt: skip
    return swapped.get(text, f"{text}x")


def archived(out: Path, path: Path) -> Path:
    """The archive that an honest program makes of a folder with one run, as forged as its results are."""
    results = ResultsFolder(out, lambda problem: None, untouched=True)
    (name,) = results.names()
    found = study(results, name)
    assert found is not None
    store = results.store(name)
    plan = chosen_plan(store.plans(), found.seed, found.profile == "full", found.experiment.source)
    assert plan is not None
    write(path, files_of(store, plan, found))
    return path


def with_renewed_digests(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of an archive whose metadata have the sizes and digests that these files have."""
    about = json.loads(files[METADATA])
    for node in about["@graph"]:
        if node.get("@id") in files and "sha256" in node:
            content = files[node["@id"]]
            node |= {"sha256": sha256_of(content), "contentSize": str(len(content))}
    return files | {METADATA: (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()}
