"""The work of kernels as counted on paper, and the least time that a machine needs for it.

The counts stand at the top of each kernel's file, one line for each kind of work:

    # Roof of KERNEL[ AND WHICH PART], UNIT: E bytes; E flops[; E blas][; E lines][; E chained][; E calls].

Each E is a formula of the sizes of the problem, in Python. They mean, per unit of work:

- bytes: read and written one after the other, each counted once where it has to come from the working set;
- flops: additions, multiplications, divisions and comparisons, by the kernel's own loops;
- blas: the same inside BLAS and LAPACK, which use all instructions of the machine;
- lines: cache lines at places that nobody foresees, which do not wait for each other;
- chained: such lines that each wait for the one before;
- calls: of the mathematical library: exp, log and the like.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"^# Roof of (?P<name>\w+(?: [\w ]+)?), (?P<unit>an? [\w ]+): (?P<terms>[^:]+)\.$", re.M)
OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Formulas:
    """The work per unit as formulas of sizes; what is not mentioned is 0."""

    unit: str
    bytes: str
    flops: str
    blas: str = "0"
    lines: str = "0"
    chained: str = "0"
    calls: str = "0"

    def at(self, sizes: Mapping[str, float]) -> "Work":
        """The numbers at these sizes."""
        return Work(**{kind: value(getattr(self, kind), sizes) for kind in KINDS})


@dataclass(frozen=True)
class Work:
    """How much of each kind of work is done."""

    bytes: float = 0.0
    flops: float = 0.0
    blas: float = 0.0
    lines: float = 0.0
    chained: float = 0.0
    calls: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(*(getattr(self, kind) + getattr(other, kind) for kind in KINDS))

    def __mul__(self, units: float) -> "Work":
        return Work(*(units * getattr(self, kind) for kind in KINDS))


KINDS = tuple(field.name for field in fields(Work))


@dataclass(frozen=True)
class Limits:
    """What a machine can do at most; bytes, lines and chained lines per second where the data of a case lies."""

    bytes: float
    flops: float
    blas: float
    lines: float
    chained: float
    calls: float


@dataclass(frozen=True)
class Roof:
    """The least seconds for some work, and the kind of work that decides them."""

    seconds: float
    bound: str


def roof(work: Work, limits: Limits) -> Roof:
    """The longest of moving the data, computing, and looking at lines here and there; each could hide the others.

    The units that compute are the same for all flops and calls, so that their times are added.
    """
    taken = {kind: getattr(work, kind) / getattr(limits, kind) for kind in KINDS}
    times = {
        "bytes": taken["bytes"],
        "flops": taken["flops"] + taken["blas"] + taken["calls"],
        "lines": taken["lines"],
        "latency": taken["chained"],
    }
    bound = max(times, key=times.__getitem__)
    return Roof(times[bound], bound)


@cache
def formulas(path: str) -> dict[str, Formulas]:
    """What the file says of its kernels' work, by name."""
    return parsed((ROOT / path).read_text())


def parsed(text: str) -> dict[str, Formulas]:
    """The formulas of a file's text by kernel; ValueError if a line is not of the form above."""
    found = {match["name"]: _read(match["unit"], match["terms"]) for match in LINE.finditer(text)}
    written = sum(line.startswith("# Roof") for line in text.splitlines())
    if len(found) != written:
        raise ValueError(f"{written} lines begin with '# Roof', but {len(found)} can be read")
    return found


def _read(unit: str, terms: str) -> Formulas:
    """`12 bytes; 2 * rank flops`: formulas in front, kinds behind."""
    pairs = [term.strip().rpartition(" ") for term in terms.split(";")]
    kinds = [kind for _, _, kind in pairs]
    if kinds[:2] != ["bytes", "flops"] or not set(kinds) <= set(KINDS) or len(set(kinds)) < len(kinds):
        raise ValueError(f"{terms!r} must have bytes, flops, and then others of {', '.join(KINDS[2:])}")
    return Formulas(unit, **{kind: formula for formula, _, kind in pairs})


def value(formula: str, sizes: Mapping[str, float]) -> float:
    """The value of a formula of numbers, sizes, + - * / ** and log2."""
    return _value(ast.parse(formula, mode="eval").body, sizes)


def names(formula: str) -> set[str]:
    """The sizes that a formula asks for."""
    return {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)} - {"log2"}


def _value(node: ast.expr, sizes: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return OPERATIONS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "log2":
        return math.log2(_value(node.args[0], sizes))
    raise ValueError(f"{ast.unparse(node)!r} is no formula of numbers, sizes, + - * / ** and log2")
