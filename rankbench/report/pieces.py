"""The pieces of a report: what is made of one experiment, and kept until something that it was made of changes."""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from rankbench.core.errors import UserError
from rankbench.core.regular import content
from rankbench.core.source_code import source_digest
from rankbench.records.codec import encode
from rankbench.records.machines import Machine
from rankbench.records.plans import Plan
from rankbench.records.store import Store, write_text
from rankbench.records.studies import Study
from rankbench.report.analysis.costs import duration
from rankbench.report.analysis.verdicts import Score, score_of
from rankbench.report.outline import answer_of, outline
from rankbench.report.render.differences import differences
from rankbench.report.render.markdown import markdown
from rankbench.report.sections import MachineUse, Piece, Section

FOLDER = ".rendered"  # in the folder of a report
_DRAWN_WITH = ("numpy", "scipy", "matplotlib", "plotly", "jinja2")
_SOURCE = (".py", ".html", ".css", ".js", ".toml")


@dataclass(frozen=True)
class Kept:
    """A piece with the digest of what it was made of, and the SHA-256 of each file that was written with it."""

    made_of: str
    files: Mapping[str, str]
    piece: Piece


def piece_of(section: Section, html: bool = True) -> Piece:
    """What the report shows of an experiment."""
    study, blocks = section.study, outline(section)
    article = told = ""
    score: Score | None = None
    try:
        score, told = score_of(study), differences(section)
    except UserError:
        if not section.problem:  # else this is the problem that the section tells
            raise
    if html:
        from rankbench.report.render.page.markup import article as written  # noqa: PLC0415  Jinja2 is slow to import

        article = written(section.name, study, blocks)
    return Piece(
        name=section.name,
        origin=_storable(study.experiment.origin),
        title=_storable(study.experiment.title),
        answer="" if section.problem else answer_of(study),
        problem=section.problem,
        markdown=_storable(markdown(blocks)),
        differences=_storable(told),
        html=_storable(article),
        cells=len(study.entries),
        good=sum(1 for entry in study.entries if entry.good),
        score=score,
        duration=duration(study) if study.results else None,
        machines=tuple(_machines(study)),
    )


def _storable(text: str) -> str:
    """The text without what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def digest(store: Store, plan: Plan, *about: object) -> str:
    """The digest of all that is shown of a run: stored files by name, size and time, versions, and our own source."""
    path = store.plan_path(plan)
    lines = [_program(), path.name, *map(str, about)]
    for folder in (path.parent, store.cells):
        lines += _states(folder)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _states(folder: Path) -> list[str]:
    """The names of the files in a folder, each with its size and time; none if there is no such folder."""
    try:
        with os.scandir(folder) as files:
            return sorted(map(_state, files))
    except OSError:
        return []


def _state(file: "os.DirEntry[str]") -> str:
    """A file's name, size and time; its name alone while somebody is writing it, and of a link to nowhere."""
    try:
        state = file.stat()
    except OSError:
        return file.name
    return f"{file.name}\n{state.st_size}\n{state.st_mtime_ns}"


def load(folder: Path, name: str, made_of: str) -> Kept | None:
    """The kept piece of this name, or None if something has changed: what it was made of, or a file of it."""
    try:
        kept = msgspec.json.decode(content(_path(folder, name)), type=Kept)
        same = kept.made_of == made_of and kept.files == sums(folder, kept.files)
    except (OSError, ValueError):
        return None
    return kept if same else None


def save(folder: Path, kept: Kept) -> None:
    """Write a piece into the folder of its report."""
    (folder / FOLDER).mkdir(exist_ok=True)
    write_text(_path(folder, kept.piece.name), msgspec.json.encode(kept).decode())


def forget(folder: Path, names: Iterable[str]) -> None:
    """Remove the kept pieces of all experiments but these."""
    stay = {_path(folder, name) for name in names}
    for path in set((folder / FOLDER).glob("*.json")) - stay:
        path.unlink(missing_ok=True)


def sums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each of these files of a report."""
    return {name: hashlib.sha256(content(folder / name)).hexdigest() for name in names}


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.json"


def _installed() -> set[str]:
    """The names of all that is installed, from the folders that hold what is said of it: reading that would be slow."""
    names = [name for path in sys.path if os.path.isdir(path) for name in os.listdir(path)]
    about = (os.path.splitext(name) for name in names)
    return {name.partition("-")[0] for name, ending in about if ending in (".dist-info", ".egg-info")}


@cache
def _program() -> str:
    """The digest of rankbench's source, of the libraries that draw, and of the names of all that is installed."""
    found = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in _DRAWN_WITH).encode())
    found.update(" ".join(sorted(_installed())).encode())
    found.update(source_digest(endings=_SOURCE).encode())
    return found.hexdigest()


def _machines(study: Study) -> Iterator[MachineUse]:
    """Each machine and set of versions that results were made on, in the order of the cells."""
    ended: dict[Machine, list[str]] = {}
    for result in study.results:
        ended.setdefault(result.machine, []).append(result.finished)
    for machine, days in ended.items():
        identity = hashlib.sha256(encode(machine).encode("utf-8", "backslashreplace")).hexdigest()
        yield MachineUse(identity, _line(machine), _row(machine), min(days), max(days))


def _line(machine: Machine) -> str:
    """A machine in one line: processor, compiler, versions and commit."""
    versions = ", ".join(f"{name} {machine.version(name)}" for name in ("numpy", "scipy"))
    commit = f", commit {machine.git}" if machine.git else ""
    kernels = f", kernels {machine.kernels} ({machine.level})" if machine.kernels else ""
    return (
        f"{machine.cpu}, {machine.usable_cores} cores, {machine.compiler}, Python {machine.python}, {versions}, "
        f"rankbench {machine.version('rankbench')}{commit}{kernels}"
    )


def _row(of: Machine) -> tuple[str, ...]:
    """A machine as a row of the table of machines."""
    values = (of.fingerprint, of.basis, of.cpu, of.usable_cores, of.memory_gib, ", ".join(of.blas), of.compiler)
    versions = (of.python, *map(of.version, ("numpy", "scipy", "rankbench")), of.git or "", of.kernels)
    return tuple(map(str, (*values, *versions)))
