"""What a case is: a call that is ready to be measured, with its work on paper; and the data that cases share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from work import Amounts, Formulas, amounts, formulas, total

from rankbench.core.contract import Floats, Solver, Step
from rankbench.data.synthetic import FeatureLowRank, LowRank
from rankbench.data.views import Comparisons, Ratings, offer
from rankbench.kernels import LEVEL
from rankbench.kernels.level import BASELINE
from rankbench.methods.factors import zero_rows
from rankbench.methods.isotonic import Blocks

DOUBLE = 8  # bytes


@dataclass(frozen=True)
class Ready:
    """A call to measure, and how many units of each kind of work are in it, by the place of the formulas.

    A place is a file and a name there: "pyx/solvers/sgd.pyx: serial_pass". The working sets are in bytes: of what is
    read and written one after the other, and of the rows that single lines are picked from.
    """

    call: Callable[[], object]
    units: float  # that the time is told for
    counts: Mapping[str, float]
    sizes: Mapping[str, float]
    streamed: float
    scattered: float = 0.0

    @property
    def work(self) -> Amounts:
        """All work of a call."""
        return total((amounts(formulas_at(place), self.sizes), units) for place, units in self.counts.items())

    @property
    def level(self) -> str:
        """The instructions that its kernels were built for: wider ones if one of them has any."""
        return LEVEL if any(map(_levelled, self.counts)) else BASELINE


def formulas_at(place: str) -> Formulas:
    """What the file says there of the work per unit."""
    path, _, name = place.partition(": ")
    return formulas(path)[name]


def _levelled(place: str) -> bool:
    """Whether the kernel was imported in the version for this process's instructions."""
    path = Path(place.partition(": ")[0])
    if path.suffix != ".pyx":
        return False
    kernel = import_module(f"rankbench.kernels.{path.parent.name}.{path.stem}")
    return LEVEL in Path(str(kernel.__file__)).parts


@dataclass(frozen=True)
class Case:
    """A kernel, or a step made of several, on some data; `why` says why it is far from its roof, where that is known.

    `made` takes the share of the problem's users that is wanted. Instructions and mispredicted branches in `why` are
    those of a unit, counted by callgrind, whose predictor is simpler than a processor's, at shares from 0.01 to 0.2.
    """

    name: str
    unit: str
    made: partial[Ready] = field(repr=False)
    why: str = ""


CASES: list[Case] = []
Made = Callable[..., Ready]


def case(name: str, unit: str, why: str = "", **settings: Any) -> Callable[[Made], Made]:
    """Make a case of a function of the share and of these settings; several above one another keep their order."""

    def kept(made: Made) -> Made:
        below = sum(one.made.func is made for one in CASES)
        CASES.insert(len(CASES) - below, Case(name, unit, partial(made, **settings), why))
        return made

    return kept


@cache
def ratings(share: float, per_user: int = 166) -> Ratings:
    """Ratings in MovieLens 1M's shape, of a share of its users."""
    return LowRank(users=part(6040, share), items=3706, per_user=per_user).view(np.random.default_rng(0))


@cache
def drawn_pairs(share: float) -> Comparisons:
    """As many comparisons of each user as there are ratings."""
    return ratings(share).comparisons(166, np.random.default_rng(1))


@cache
def all_pairs(share: float) -> Comparisons:
    """All pairs of 50 ratings of each user."""
    return ratings(share, 50).comparisons()


@cache
def tasks(share: float) -> Ratings:
    """The sizes of Table 2 of Cheng et al. 2018: 41 ratings of each task, 64 features."""
    return FeatureLowRank(users=part(1000, share), per_user=41).view(np.random.default_rng(0))


def part(whole: int, share: float) -> int:
    """This share of a number, two at least."""
    return max(2, round(whole * share))


def factors(rows: int, rank: int, seed: int = 0) -> Floats:
    """A random vector for each row, padded to whole lanes."""
    out = zero_rows(rows, rank)
    out[:, :rank] = np.random.default_rng(seed).standard_normal((rows, rank)) / np.sqrt(rank)
    return out


def pools_of(blocks: Blocks, x: Floats) -> float:
    """How many pools there are for each row where x is projected: runs of rows with means that agree to rounding."""
    firsts = np.repeat(blocks.indptr[:-1], np.diff(blocks.indptr))
    means = blocks.project(x)[firsts + blocks.order] - blocks.depth  # the projection has sorted `order` by x
    begun = np.abs(np.diff(means, prepend=np.inf)) > 1e-9
    begun[blocks.indptr[:-1]] = True
    return float(begun.mean())


def steps_of(solver: Any, train: Ratings | Comparisons, skipped: int = 0) -> tuple[Callable[[], Step], Step]:
    """A function that takes the next step at each call, after so many steps, and the last of these.

    A training that has ended begins again.
    """
    following = partial(next, chain.from_iterable(_training(solver, train) for _ in count()))
    for _ in range(skipped + 1):
        step = following()
    return following, step


def _training(solver: Solver, train: Ratings | Comparisons) -> Iterator[Step]:
    """The steps of a training on one thread, without its start."""
    steps = iter(solver.steps(offer(solver, train), np.random.default_rng(0), 1))
    next(steps)
    return steps


def only_step_of(solver: Any, train: Ratings) -> Callable[[], Step]:
    """A function that trains a solver of a single step."""
    return lambda: next(iter(solver.steps(train, np.random.default_rng(0), 1)))
