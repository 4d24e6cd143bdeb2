"""The work of kernels as counted on paper, and the least time that a machine needs for it.

The counts stand at the top of each kernel's file, one line for each kind of work:

    # Roof of KERNEL[ AND WHICH PART], UNIT: E bytes; E flops[; E blas][; E lines][; E calls].

Each E is a formula of the sizes of the problem, in Python. They mean, per unit of work:

- bytes: read and written one after the other, each counted once where it has to come from the working set;
- flops: additions, multiplications, divisions and comparisons, by the kernel's own loops;
- blas: the same inside BLAS and LAPACK, which use all instructions of the machine;
- lines: cache lines at places that nobody foresees, which do not wait for each other;
- calls: of the mathematical library: exp, log and the like.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"^# Roof of (?P<name>\w+(?: [\w ]+)?), an? [\w ]+: (?P<terms>[^:]+?)\.$", re.M)
KINDS = ("bytes", "flops", "blas", "lines", "calls")
Amounts = Mapping[str, float]  # by kind: of work, or of what a machine can do in a second
Formulas = Mapping[str, str]  # by kind: of the work per unit, in terms of sizes


def amounts(of: Formulas, sizes: Mapping[str, float]) -> Amounts:
    """The work per unit at these sizes."""
    return {kind: value(formula, sizes) for kind, formula in of.items()}


def total(works: Iterable[tuple[Amounts, float]]) -> Amounts:
    """The sum of works, each so many times."""
    found = dict.fromkeys(KINDS, 0.0)
    for work, times in works:
        for kind, amount in work.items():
            found[kind] += times * amount
    return found


@dataclass(frozen=True)
class Roof:
    """The least seconds for some work, and the kind of work that decides them."""

    seconds: float
    bound: str


def roof(work: Amounts, limits: Amounts) -> Roof:
    """The longest of moving the data, computing, and looking at lines here and there; each could hide the others.

    The units that compute are the same for all flops and calls, so that their times are added. Bytes and lines per
    second are those of where the data of a case lies.
    """
    taken = {kind: work.get(kind, 0.0) / limits[kind] for kind in KINDS}
    times = {
        "bytes": taken["bytes"],
        "flops": taken["flops"] + taken["blas"] + taken["calls"],
        "lines": taken["lines"],
    }
    bound = max(times, key=times.__getitem__)
    return Roof(times[bound], bound)


@cache
def formulas(path: str) -> dict[str, Formulas]:
    """What the file says of its kernels' work, by name."""
    return parsed((ROOT / path).read_text())


def parsed(text: str) -> dict[str, Formulas]:
    """The formulas of a file's text by kernel; ValueError if a line is not of the form above."""
    found = {match["name"]: _read(match["terms"]) for match in LINE.finditer(text)}
    written = sum(line.startswith("# Roof") for line in text.splitlines())
    if len(found) != written:
        raise ValueError(f"{written} lines begin with '# Roof', but {len(found)} can be read")
    return found


def _read(terms: str) -> Formulas:
    """`12 bytes; 2 * rank flops`: formulas in front, kinds behind."""
    pairs = [term.strip().rpartition(" ") for term in terms.split(";")]
    kinds = [kind for _, _, kind in pairs]
    if kinds[:2] != ["bytes", "flops"] or not set(kinds) <= set(KINDS) or len(set(kinds)) < len(kinds):
        raise ValueError(f"{terms!r} must have bytes, flops, and then others of {', '.join(KINDS[2:])}")
    return {kind: formula for formula, _, kind in pairs}


def value(formula: str, sizes: Mapping[str, float]) -> float:
    """The value of a formula of numbers, sizes and log2, which stands in a file of ours, in Python."""
    return float(eval(formula, {"__builtins__": {}, "log2": log2}, dict(sizes)))


def names(formula: str) -> set[str]:
    """The sizes that a formula asks for."""
    return set(compile(formula, "formula", "eval").co_names) - {"log2"}
