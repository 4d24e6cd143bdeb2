"""The share of its roof that each case reaches: measured in turns with the machine itself, and told as a table."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import median
from time import perf_counter, process_time

from machine import Machine, described
from pages import rows
from ready import Case, Ready
from work import Roof, roof, total

WEAK = 0.3  # a share of the roof below this is marked
HEAD = ("kernel", "unit", "CPU time", "least .. most", "wall", "roof", "bound by", "share", "", "why")
SCALES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True)
class Taken:
    """The seconds per unit in each turn: of the processor, and by the clock."""

    busy: list[float]
    wall: list[float]


@dataclass(frozen=True)
class Line:
    """What is told of a case."""

    case: Case
    taken: Taken
    roof: Roof  # of one unit

    @property
    def share(self) -> float:
        """The roof's part of the median CPU time."""
        return self.roof.seconds / median(self.taken.busy)

    @property
    def weak(self) -> bool:
        """Whether it is far from its roof."""
        return self.share < WEAK


def lines(
    cases: Sequence[Case], look: Callable[[], Machine], turns: int, least: float, share: float
) -> tuple[list[Line], Machine]:
    """Every case and the machine once per turn, after a turn to warm up; the machine's limits are the best seen."""
    ready = [case.made(share) for case in cases]
    calls = [_enough(each, least) for each in ready]
    found: list[list[tuple[float, float]]] = []
    seen: list[Machine] = []
    for _ in range(turns + 1):
        seen.append(look())
        found.append([_once(each, number) for each, number in zip(ready, calls, strict=True)])
    best = reduce(Machine.best, seen)
    taken = [Taken(*(list(side) for side in zip(*times, strict=True))) for times in zip(*found[1:], strict=True)]
    told = zip(cases, taken, ready, strict=True)
    return [Line(case, times, roof_of(each, best)) for case, times, each in told], best


def roof_of(ready: Ready, machine: Machine) -> Roof:
    """The least time of a unit."""
    limits = machine.limits(ready.level, ready.streamed, ready.scattered)
    return roof(total([(ready.work, 1 / ready.units)]), limits)


def _enough(ready: Ready, least: float) -> int:
    """How many calls take long enough to be timed."""
    ready.call()
    return max(1, round(least / max(_once(ready, 1)[0] * ready.units, 1e-9)))


def _once(ready: Ready, number: int) -> tuple[float, float]:
    """The seconds per unit of the processor and by the clock, over so many calls."""
    busy, wall = process_time(), perf_counter()
    for _ in range(number):
        ready.call()
    units = number * ready.units
    return (process_time() - busy) / units, (perf_counter() - wall) / units


def cells(line: Line) -> tuple[str, ...]:
    """The columns of a line, as the head names them."""
    busy = line.taken.busy
    spread = f"{shown(min(busy))} .. {shown(max(busy))}"
    return (
        line.case.name,
        line.case.unit,
        shown(median(busy)),
        spread,
        shown(median(line.taken.wall)),
        shown(line.roof.seconds),
        line.roof.bound,
        f"{line.share:.0%}",
        *(("WEAK", line.case.why or "to be explained") if line.weak else ("", "")),
    )


def table(found: Sequence[Line]) -> str:
    """A plain table, one line per case."""
    lines = [HEAD, *map(cells, found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in lines
    )


def as_csv(found: Sequence[Line]) -> str:
    """The same as comma-separated values, in seconds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("kernel", "unit", "cpu", "cpu_least", "cpu_most", "wall", "roof", "bound", "share", "why"))
    for line in found:
        busy = line.taken.busy
        times = median(busy), min(busy), max(busy), median(line.taken.wall), line.roof.seconds
        numbers = [f"{number:.6g}" for number in times]
        writer.writerow((line.case.name, line.case.unit, *numbers, line.roof.bound, f"{line.share:.4f}", line.case.why))
    return out.getvalue()


def section(found: Sequence[Line], machine: Machine) -> str:
    """The same as the text of a section of a report in Markdown."""
    told = rows([HEAD, ("---",) * len(HEAD), *map(cells, found)])
    limits = "\n".join(f"- {line}" for line in described(machine))
    about = (
        "Written by `make roof`. The roof of a kernel is the least time that this machine could take for a unit of its"
        " work: the longest of moving its bytes from where they lie, computing its flops, and looking at lines here and"
        " there. The work is counted on paper, at the top of each kernel's file; the share is the roof over the median"
        f" CPU time of one thread. Below {WEAK:.0%} a kernel is marked. Instructions and mispredicted branches are for"
        " a unit, counted by callgrind, which simulates a simple predictor, on smaller problems of the same kind."
    )
    return f"{about}\n\nThe machine:\n\n{limits}\n\n{told}\n"


def shown(seconds: float) -> str:
    """A time with three digits, in the unit in which it is at least 1."""
    unit, scale = next(((unit, scale) for unit, scale in SCALES if seconds >= scale), SCALES[-1])
    return f"{seconds / scale:.3g} {unit}"
