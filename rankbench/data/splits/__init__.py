"""Splits: the papers' protocols for cutting data into training and held-out parts, each with a name.

The hash of a split covers every byte of its parts and is stored in every result. It depends neither on the
order of rows in a file nor on the number of threads. Random choices use integers made from the raw bits of the
generator, so they depend neither on the machine nor on NumPy's version.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from rankbench.arrays.npz import fingerprint
from rankbench.core.brief import as_html
from rankbench.core.contract import Solver
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.core.texts import error_text
from rankbench.data.splits.cores import core_of
from rankbench.data.views import Ratings, View, mismatch
from rankbench.names import Named, Registry

SPLITS = Registry(
    "split",
    {
        "given-folds": "rankbench.data.splits.folds:GivenFolds",
        "n-per-user": "rankbench.data.splits.per_user:NPerUser",
        "items-per-task": "rankbench.data.splits.per_user:ItemsPerTask",
        "per-user": "rankbench.data.splits.per_user:PerUser",
        "leave-one-out": "rankbench.data.splits.per_user:LeaveOneOut",
        "half-per-user": "rankbench.data.splits.reviewers:HalfPerUser",
        "leave-reviewer-out": "rankbench.data.splits.reviewers:LeaveReviewerOut",
        "entries": "rankbench.data.splits.shares:Entries",
        "cold-items": "rankbench.data.splits.shares:ColdItems",
        "new-users": "rankbench.data.splits.shares:NewUsers",
        "temporal": "rankbench.data.splits.in_time:Temporal",
        "leave-last-out": "rankbench.data.splits.in_time:LeaveLastOut",
        "k-folds": "rankbench.data.splits.folds:KFolds",
        "given": "rankbench.data.splits.given:Given",
        "binary": "rankbench.data.splits.drawn:Binary",
        "comparisons": "rankbench.data.splits.drawn:DrawnComparisons",
    },
    "rankbench.splits",
    "rankbench list splits",
    needs=("version", "cut"),
)
_FOR_TUNING = {
    "own": "rankbench.data.splits.validation:OwnValidation",
    "again": "rankbench.data.splits.validation:AppliedAgain",
}
VALIDATIONS = replace(SPLITS, entries={**SPLITS.entries, **_FOR_TUNING})


class CannotCut(UserError):
    """The data does not suit a split; the message continues a sentence that starts with the split's name."""


@dataclass(frozen=True, eq=False)
class Split:
    """A training part and a held-out part over the same users and items.

    `seen` has the ratings of the items that each user has seen, for training parts that are comparisons. Solvers that
    learn from ratings only learn from it. `validation` has rows of neither part, on which settings can be chosen.
    """

    train: Any
    test: Any
    seen: Ratings | None = None
    validation: Any | None = None

    def __repr__(self) -> str:
        return f"Split({', '.join(f'{name}={part!r}' for name, part in self.parts.items())})"

    def _repr_html_(self) -> str:
        return as_html("Split", ((name, repr(part)) for name, part in self.parts.items()))

    @property
    def parts(self) -> dict[str, View]:
        """The parts by name, without those that the split does not have."""
        parts = {"train": self.train, "test": self.test, "seen": self.seen, "validation": self.validation}
        return {name: part for name, part in parts.items() if part is not None}

    def train_for(self, solver: Solver) -> View:
        """The training part as this solver can learn from it: `seen` if it learns from ratings and not comparisons."""
        instead = self.seen is not None and mismatch(solver, self.train) and not mismatch(solver, self.seen)
        return self.seen if instead and self.seen is not None else self.train

    @property
    def hash(self) -> str:
        """The SHA-256 of the content of the parts that a solver is trained on, or measured on."""
        return fingerprint(*(_trained_on(part) for part in (self.train, self.test, self.seen) if part is not None))


class SplitProtocol(Protocol):
    """A splitting protocol: a frozen dataclass of settings that cuts a view into parts."""

    version: ClassVar[int]

    # As a solver annotates `train`, a split annotates `view` with the kinds that it cuts.
    def cut(self, view: Any, rng: np.random.Generator, repetition: int) -> Split:
        """The split, drawn with `rng` or chosen by the repetition, which is counted from 0."""
        ...


@runtime_checkable
class DrawnOnce(Protocol):
    """A split whose repetitions are parts of one and the same draw, such as the folds of a partition; optional."""

    drawn_once: ClassVar[Literal[True]]


@runtime_checkable
class OfCore(Protocol):
    """A split of the data's core alone, in which each user and each item has at least `core` rows; optional.

    A split with this setting, your own too, gets the core in place of the data.
    """

    core: int


def split(view: View, protocol: str, *, seed: int = 0, repetition: int = 0, **settings: object) -> Split:
    """Cut a view by a named protocol: `split(data, "n-per-user", n=50, seed=0)`."""
    named = SPLITS.resolve(protocol, settings)
    for name in dict(named.given).keys() & settings.keys():
        raise UserError(
            f"{name} is given twice, in {protocol!r} and as {name}={settings[name]!r}", remedy="give it once"
        )
    return cut(view, named, seed, repetition)


def cut(view: View, protocol: Named, seed: int, repetition: int, data: str | None = None) -> Split:
    """The split of a view for this protocol, seed and repetition; errors mention `data`, the name of the data set."""
    name, record = protocol.identity, protocol.record
    shown = f"the split {protocol.full} of {data}" if data else f"the split {protocol.full}"
    try:
        drawn = 0 if isinstance(record, DrawnOnce) else repetition
        if isinstance(record, OfCore) and record.core > 1:
            view = _core(view, record.core)
        found = record.cut(view, stream(seed, "split", name, drawn), repetition)
    except CannotCut as error:
        raise UserError(f"{shown} {error}") from None
    except UserError as error:
        raise error.within(shown) from None
    except Exception as error:  # a user's own split may raise anything
        raise UserError(f"{shown} cannot be made: {error_text(error)}") from error
    if not isinstance(found, Split):
        raise UserError(f"{shown} is a {type(found).__name__}: `cut` must return a Split")
    for part in ("train", "test"):
        if len(found.parts[part]) == 0:
            raise UserError(f"{shown} leaves nothing to {part} on: the data is too small for it")
    parts: dict[str, Any] = {name: _without_folds(part) for name, part in found.parts.items()}
    return Split(**parts)


def _core(view: View, least: int) -> View:
    """The core of a view; an error if nothing is left of it."""
    found = core_of(view, least)
    if len(view) and not len(found):
        raise CannotCut(f"keeps no row, as core={least} takes all users and items away: lower core")
    return found


def _trained_on(part: View) -> View:
    """The part without the times or groups of its rows, which no solver gets and no metric looks at."""
    return replace(part, times=None) if isinstance(part, Ratings) else replace(part, groups=None)


def _without_folds(part: View) -> View:
    """The part without the published folds, so that equal parts have equal hashes."""
    return replace(part, folds=None) if isinstance(part, Ratings) and part.folds is not None else part
