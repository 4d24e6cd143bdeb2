"""Conventions: what two tools may do differently and still call the number by the same name, as one record."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any


class Ties(StrEnum):
    """In which order items of equal score stand."""

    EXPECTED = "expected value over all orders"
    GIVEN = "in the order of the file"
    TREC = "descending id, scores in single precision"
    ASCENDING = "ascending id"
    FIRST = "relevant items first"
    LAST = "relevant items last"
    TOGETHER = "all at the last place of the tie"
    RANX = "Numba's quicksort (not stable)"
    RANX_TWICE = "Numba's quicksort (not stable), run twice"


class Candidates(StrEnum):
    """Which items of a user are ranked."""

    RUN = "the items of the run"
    JUDGED = "the items of the run that are in the truth"
    TRUTH = "the items of the truth, those without a score last"
    BOTH = "the items of run and truth, those without a score last"


class Gain(StrEnum):
    """What an item that counts as relevant is worth in DCG; all others are worth 0, and no gain is below 0."""

    LINEAR = "relevance"
    EXPONENTIAL = "2^relevance - 1"
    SHIFTED = "2^(relevance - lowest relevant + 1) - 1"
    BINARY = "1"


class Discount(StrEnum):
    """The weight of a rank, counted from 1, in DCG."""

    LATER = "1/log2(1 + rank)"
    CLIPPED = "1/max(1, log2 rank)"


class Ideal(StrEnum):
    """The list whose DCG is the greatest possible one."""

    CUT = "the best k items of the truth"
    WHOLE = "all items of the truth"
    RETRIEVED = "the best k items that were retrieved"


class Divisor(StrEnum):
    """What the hits, or for average precision the sum of precisions, are divided by."""

    CUT = "k"
    RETRIEVED = "min(k, retrieved)"
    RELEVANT = "relevant"
    RELEVANT_OR_CUT = "min(k, relevant)"
    RELEVANT_OR_RETRIEVED = "min(k, relevant, retrieved)"
    PLACES = "k, precision at all of the k ranks"


class Missing(StrEnum):
    """What becomes of a user of the truth of whom the run has nothing."""

    DROPPED = "left out"
    ZERO = "count 0"
    TIED = "all their items tie"


class Unknown(StrEnum):
    """What becomes of a user of the run of whom the truth has nothing."""

    DROPPED = "left out"
    ZERO = "count 0"


class Without(StrEnum):
    """What becomes of a user who has no relevant item."""

    DROPPED = "left out"
    ZERO = "count 0"
    ONE = "count 1"
    ALIKE = "left out if all their items are judged alike, else count 0"


class Average(StrEnum):
    """What each user weighs in the mean."""

    USERS = "over users"
    DIVISORS = "over all hits and divisors together"
    POSITIVES = "over users, weighted by their relevant items"
    PAIRS = "over pairs"


@dataclass(frozen=True)
class Convention:
    """Everything that decides a metric's value besides the run, the truth and the cut-off.

    What does not concern the metric has its default, so that conventions that cannot differ are equal.
    """

    metric: str
    ties: Ties
    candidates: Candidates = Candidates.RUN
    relevant: float | None = None  # the lowest relevance that counts; None: every item of the truth is relevant
    missing: Missing = Missing.DROPPED
    unknown: Unknown = Unknown.DROPPED
    without: Without = Without.DROPPED
    gain: Gain = Gain.LINEAR
    discount: Discount = Discount.LATER
    ideal: Ideal = Ideal.CUT
    divisor: Divisor = Divisor.CUT
    average: Average = Average.USERS


LABELS = {
    "ties": "ties",
    "candidates": "ranked",
    "relevant": "relevant",
    "missing": "users missing in the run",
    "unknown": "users missing in the truth",
    "without": "users without a relevant item",
    "gain": "gain",
    "discount": "discount",
    "ideal": "ideal list",
    "divisor": "divided by",
    "average": "mean",
}
_ORDERS = (Ties.EXPECTED, Ties.GIVEN, Ties.TREC, Ties.ASCENDING, Ties.FIRST, Ties.LAST)
_CHOICES: dict[str, dict[str, tuple[StrEnum, ...]]] = {  # what a metric's conventions differ in, beside `relevant`
    "ndcg": {"gain": tuple(Gain), "discount": tuple(Discount), "ideal": tuple(Ideal)},
    "precision": {
        "divisor": (Divisor.CUT, Divisor.RETRIEVED, Divisor.RELEVANT_OR_CUT),
        "average": (Average.USERS, Average.DIVISORS),
    },
    "recall": {"divisor": (Divisor.RELEVANT, Divisor.RELEVANT_OR_CUT), "average": (Average.USERS, Average.DIVISORS)},
    "map": {
        "divisor": (
            Divisor.RELEVANT,
            Divisor.RELEVANT_OR_CUT,
            Divisor.RELEVANT_OR_RETRIEVED,
            Divisor.PLACES,
        )
    },
    "mrr": {},
    "hit-rate": {},
    "auc": {"average": (Average.USERS, Average.POSITIVES, Average.PAIRS)},
}
METRICS = tuple(_CHOICES)


def words(convention: Convention, name: str) -> str:
    """What the convention says of one thing, in words: `words(convention, "relevant")` is "1 or more"."""
    value = getattr(convention, name)
    if name != "relevant":
        return str(value)
    return "every item of the truth" if value is None else f"{value:g} or more"


def told(metric: str) -> list[str]:
    """The names of everything that a convention of this metric says."""
    return [*_CHOICES[metric], "ties", "candidates", "relevant", "without", "missing", "unknown"]


def phrases(convention: Convention) -> list[str]:
    """Everything that the convention says, thing by thing."""
    return [f"{LABELS[name]}: {words(convention, name)}" for name in told(convention.metric)]


def differences(convention: Convention, other: Convention) -> list[str]:
    """What the first convention says where it differs from the other one."""
    differ = [
        field.name for field in fields(Convention) if getattr(convention, field.name) != getattr(other, field.name)
    ]
    return [f"{LABELS[name]}: {words(convention, name)}" for name in differ]


def one_step_from(convention: Convention, levels: tuple[float, ...]) -> Iterator[Convention]:
    """The conventions that differ from this one in one thing; `levels` are the lowest relevances to try."""
    choices: dict[str, tuple[Any, ...]] = {
        "ties": _ORDERS,
        "candidates": tuple(Candidates),
        "missing": (Missing.DROPPED, Missing.ZERO),
        "without": (Without.DROPPED, Without.ZERO),
        **_CHOICES[convention.metric],
    }
    changed = [replace(convention, **{name: value}) for name, values in choices.items() for value in values]
    changed += [replace(convention, relevant=level) for level in (None, *levels)]
    for one in changed:
        is_complete = one.gain != Gain.SHIFTED or one.relevant is not None  # this gain needs a lowest relevance
        if one != convention and is_complete:
            yield one
