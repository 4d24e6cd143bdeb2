"""What is to be judged: runs by name, their repetitions by a pattern in the path, and the truth of each repetition."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankbench.core.errors import UserError
from rankbench.judging.sources import Source

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_NAMED = re.compile(r"([^=/\[\]{}]+)=(.+)", re.DOTALL)
Sources = Mapping[str, Source]  # by what stands in place of the pattern's braces; one source alone has an empty text


@dataclass(frozen=True)
class Asking:
    """The runs by name and repetition, and the truth of each repetition."""

    runs: Mapping[str, Mapping[int, Source]]
    truths: Mapping[int, Source]
    truth: str  # what the truth is called
    words: tuple[str, ...]  # the runs and the truth as words of the command line, names for objects of Python


def asking(runs: Any, truth: Any) -> Asking:
    """What is to be judged, from paths or from what Python hands over; without a truth the first run holds it."""
    found = _of_mapping(runs) if isinstance(runs, Mapping) else _of_paths(runs)
    labels = sorted({label for sources in found.values() for label in sources}, key=_by_number)
    numbers = {label: number for number, label in enumerate(label for label in labels if label)}
    repetitions = {
        name: {numbers.get(label, 0): source for label, source in own.items()} for name, own in found.items()
    }
    truths, called = _truths(truth, numbers, next(iter(repetitions.values())))
    return Asking(repetitions, truths, called, tuple(_words(runs, truth, called)))


def _words(runs: Any, truth: Any, called: str) -> Iterator[str]:
    """The runs and the truth as one writes them on the command line."""
    if isinstance(runs, Mapping):
        yield from (f"{name}={one}" if isinstance(one, str | Path) else str(name) for name, one in runs.items())
    else:
        yield from map(str, [runs] if isinstance(runs, str | Path) else runs)
    if truth is not None:
        yield from ("--truth", str(truth) if isinstance(truth, str | Path) else called)


def _truths(truth: Any, numbers: Mapping[str, int], first: Mapping[int, Source]) -> tuple[Mapping[int, Source], str]:
    """The truth of each repetition, and its name."""
    count = max(1, len(numbers))
    if truth is None:
        if not all(source.has_truth() for source in first.values()):
            raise UserError(
                "there is no truth to judge by",
                remedy="give it with --truth FILE, or a column of relevances in the run",
            )
        return {number: first.get(number, first[min(first)]) for number in range(count)}, "its own truth"
    sources = _sources("truth", truth) if isinstance(truth, str | Path) else {"": Source.of(truth)}
    called = _name_of(str(truth)) if isinstance(truth, str | Path) else "truth"
    if set(sources) == {""}:
        return dict.fromkeys(range(count), sources[""]), called
    if missing := [label for label in numbers if label not in sources]:
        raise UserError(f"{truth} has no file for {missing[0]!r}, and a run has one")
    return {number: sources[label] for label, number in numbers.items()}, called


def _of_mapping(runs: Mapping[Any, Any]) -> Mapping[str, Sources]:
    """The runs of a dictionary: a list stands for repetitions."""
    if not runs:
        raise UserError("there is no run to judge", remedy="give at least one: {name: scores}")
    found: dict[str, Sources] = {}
    for key, data in runs.items():
        name = str(key)
        if isinstance(data, str | Path):
            found[name] = _sources(name, data)
        elif isinstance(data, list | tuple):
            if not data:
                raise UserError(f"{name!r} has no repetition")
            found[name] = {str(number): Source.of(one, name) for number, one in enumerate(data)}
        else:
            found[name] = {"": Source.of(data, name)}
    return found


def _of_paths(runs: Any) -> Mapping[str, Sources]:
    """The runs of a list of paths, each with a name in front if it is written NAME=PATH."""
    listed: Sequence[Any] = [runs] if isinstance(runs, str | Path) else runs
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, str | Path) for one in listed):
        raise UserError("runs are paths, or a dictionary of names with paths, tables or matrices")
    found: dict[str, Sources] = {}
    for one in map(str, listed):
        match = None if os.path.exists(one) else _NAMED.fullmatch(one)
        name, path = (match[1], match[2]) if match else (_name_of(one), one)
        if name in found:
            raise UserError(f"two runs are called {name!r}", remedy="give them names: NAME=PATH")
        found[name] = _sources(name, path)
    return found


def _name_of(path: str) -> str:
    """The name of a run's file without its folder, its endings and the pattern."""
    short = _PLACEHOLDER.sub("", Path(path.partition("[")[0]).name)
    return short.removesuffix(".gz").rpartition(".")[0].strip("-_. ") or short.strip("-_. ") or "run"


def _sources(name: str, path: str | Path) -> Sources:
    """The files of a path: with a pattern in it, such as `model-{seed}.run`, one for each that fits."""
    text = str(path)
    if os.path.exists(text) or not _PLACEHOLDER.search(text):
        return {"": Source.of(text)}
    files, bracket, settings = text.partition("[")
    parts = _PLACEHOLDER.split(files)
    if len(parts) != 3:
        raise UserError(f"{text} has {len(parts) // 2} patterns in braces", remedy="give one: model-{seed}.run")
    found = dict(sorted(_fitting(parts[0], parts[2]), key=lambda pair: _by_number(pair[0])))
    if not found:
        raise UserError(f"no file fits {text}, which {name} is to be read from")
    return {label: Source.of(f"{file}{bracket}{settings}") for label, file in found.items()}


def _fitting(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The files whose path begins and ends so, with what stands between; the pattern is within a file's name."""
    folder, slash, start = before.rpartition("/")
    if "/" in after:
        raise UserError("a pattern in braces stands in the name of a file, not of a folder")
    whole = Path(folder + slash or ".")
    for path in whole.glob("*") if os.path.isdir(whole) else ():
        name = path.name
        if name.startswith(start) and name.endswith(after) and len(name) > len(start) + len(after):
            yield name[len(start) : len(name) - len(after)], f"{folder}{slash}{name}"


def _by_number(label: str) -> tuple[int, int, str]:
    """An order in which 2 comes before 10, and numbers before texts."""
    return (0, int(label), label) if label.isdecimal() else (1, 0, label)
