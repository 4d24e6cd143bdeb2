"""Where results come from: a folder, an archive, or what one machine or commit has made of either.

An archive is unpacked into a temporary folder, and a selection is copied into one. `main` removes them at the end.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from rankbench.core.errors import UserError
from rankbench.core.lines import complain, mention

if TYPE_CHECKING:
    from rankbench.records.store import ResultsFolder, Warn

# Each function imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

_COMPLAINTS = 9  # lines about single files, before they are only counted
_folders: ContextVar[ExitStack] = ContextVar("temporary folders of this command")


@contextmanager
def temporary_folders() -> Iterator[None]:
    """A context in which archives may be opened; their temporary folders are removed at its end."""
    with ExitStack() as stack:
        before = _folders.set(stack)
        try:
            yield
        finally:
            _folders.reset(before)


def is_archive(name: str | Path) -> bool:
    """Whether this is the path of a file that can only be an archive."""
    return not str(name).endswith(".toml") and Path(name).is_file()


def results_in(out: Path, untouched: bool = False, warn: "Warn | None" = None) -> "ResultsFolder":
    """A folder of results; files in it that cannot be read are reported, on standard error unless `warn` is given.

    They are also renamed, unless the folder is to be left `untouched`.
    """
    from rankbench.records.store import ResultsFolder

    return ResultsFolder(out, warn or first_complaints(), untouched)


def first_complaints() -> "Warn":
    """A function that complains of the first files that cannot be read; how many more there are is said at the end."""
    told: list[str] = []

    def warn(text: str) -> None:
        told.append(text)
        if len(told) <= _COMPLAINTS:
            complain(text)

    def end() -> None:
        if len(told) > _COMPLAINTS:
            complain(f"{len(told) - _COMPLAINTS:,} more files cannot be read")

    _folders.get().callback(end)
    return warn


def stored_in(path: Path, untouched: bool = False, warn: "Warn | None" = None) -> "ResultsFolder":
    """The results in a folder or an archive; see `results_in` for files in it that cannot be read."""
    return results_in(_unpacked(path) if is_archive(path) else path, untouched, warn)


def made_by(path: Path, machine: str, experiment: str = "") -> "ResultsFolder":
    """The results in a folder or an archive that a machine or a commit has made; all of them if none is named."""
    from rankbench.records.by_machine import select

    results = stored_in(path)
    if not machine:
        return results
    folder = _folders.get().enter_context(tempfile.TemporaryDirectory(prefix="rankbench-selection-"))
    select(results, machine, Path(folder), experiment)
    return results_in(Path(folder))


def named(text: str, out: Path, experiment: str = "") -> "ResultsFolder":
    """The results that a text means: those in this folder or archive, or those of this commit in the folder `out`."""
    if Path(text).exists():
        return stored_in(Path(text))
    if not out.exists():
        raise UserError(f"{text!r} is no folder and no archive, and there are no results under {out} to look for it as "
                        "a commit")  # fmt: skip
    return made_by(out, _commit(text), experiment)


def _unpacked(path: Path) -> Path:
    """The temporary folder with the results in an archive; says how many of its run are there."""
    from rankbench.records.archive import opened
    from rankbench.report.crate import there

    folder = _folders.get().enter_context(opened(path))
    results = results_in(folder, untouched=True, warn=lambda problem: None)  # told when they are read for the verb
    counts = [there(plan, results.store(name)) for name in results.names() for plan in results.store(name).plans()]
    mention(f"{path}: {sum(have for have, _ in counts)} of {sum(total for _, total in counts)} results there")
    return folder


def _commit(text: str) -> str:
    """The first twelve digits of a commit that git knows by this name here; else the text itself."""
    words = ["git", "rev-parse", "--verify", "--quiet", "--short=12", "--end-of-options", f"{text}^{{commit}}"]
    try:
        return subprocess.run(words, capture_output=True, check=True, text=True, timeout=20).stdout.strip() or text
    except (OSError, subprocess.SubprocessError, ValueError):
        return text
