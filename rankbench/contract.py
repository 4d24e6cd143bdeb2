"""The contract of the house: a solver is a frozen record of settings whose `steps` is a generator of models.

The harness runs its clock inside `next()` and nowhere else: while a solver is suspended at a `yield`,
its model is scored and no time passes for it. A solver loops for ever, or returns once it has
converged (a closed form yields once); budgets and patience belong to the harness. All state lives in
the generator's local variables, and all randomness comes from the generator handed in.
"""

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass
from enum import Enum
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Float32s = npt.NDArray[np.float32]
Records = npt.NDArray[np.void]  # of a structured type
Flags = npt.NDArray[np.bool_]


class Dataclass(Protocol):
    """What every dataclass has, its fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Determinism(Enum):
    """What a solver promises about its bits when it is run again with the same seed."""

    EXACT = "exact"  # the same for any number of threads
    FIXED_THREADS = "fixed-threads"  # the same for the same number of threads
    RACY = "racy"  # none: threads write over each other on purpose


class Model(Protocol):
    """What a step leaves behind: something that scores pairs."""

    def score(self, users: Ints, items: Ints, /) -> Floats:
        """One score per (user, item) pair, higher is better; NaN says «I cannot»."""
        ...


@runtime_checkable
class ScoresAll(Protocol):
    """A model that scores many users for the whole catalogue at once, faster than pair by pair; optional."""

    def score_all(self, users: Ints, threads: int = 1, /) -> Floats:
        """users x items, the same bits for any number of threads."""
        ...


@runtime_checkable
class RankingFunctions(Protocol):
    """A model whose users all weigh the same few functions, each linear in the item features; optional."""

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """The weights of the features, a column per function, and the weight that the mean user gives each function."""
        ...


@dataclass(frozen=True)
class Step:
    """A point on a solver's way; the model is lent until the next step is asked for.

    A solver that ends by itself leaves its last model as it was.
    """

    model: Model
    objective: Callable[[], float] | None = None  # computed only if somebody asks, off the clock
    gap: Callable[[], float] | None = None  # convex problems: an upper bound on objective - optimum
    bound: float | None = None  # parallel schedules: how many times faster the threads at work can make it at most


class Solver(Protocol):
    """What the harness asks of an algorithm: a frozen dataclass whose fields are its settings.

    A solver declares the four properties as class variables; `needs_features` and `determinism` may also be
    properties of its own, where they depend on a setting.
    """

    @property
    def learns_from(self) -> type | tuple[type, ...]:
        """The kind of data: `Ratings`, `Comparisons`, or a tuple of both with the preferred one first."""
        ...

    @property
    def needs_features(self) -> bool:
        """Whether it trains on item features; without this they are withheld."""
        ...

    @property
    def determinism(self) -> Determinism:
        """How far the same seed gives the same results again."""
        ...

    @property
    def version(self) -> int:
        """A number that is raised by whoever changes the results: stored ones are then made anew."""
        ...

    # A solver annotates `train` with the kinds that it learns from. Which of them it gets is known only when it
    # runs, where `offer` checks it, so a caller who has any solver at hand can promise no more than Any here.
    def steps(self, train: Any, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The models on the way from the start to the end, each better trained than the last."""
        ...


@runtime_checkable
class NeedsMore(Protocol):
    """A solver that some settings of which need a package beyond rankbench's own; optional."""

    def missing(self) -> str | None:
        """The command that installs what is missing; None if nothing is, and then it is imported from now on."""
        ...


class OwnMetric(Dataclass, Protocol):
    """A metric of the user's own, a record with settings like a solver; an average over users."""

    definition: str  # what the number means, who is left out
    better: Literal["higher", "lower"]
    limits: tuple[float, float]
    version: int

    def of_user(self, scores: Floats, ratings: Floats, /) -> float:
        """The value for one user from scores and ratings of the held-out items; NaN leaves the user out."""
        ...


DECLARATIONS = ("learns_from", "needs_features", "determinism", "version")
