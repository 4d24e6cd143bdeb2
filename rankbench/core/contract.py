"""The protocols of solvers and models: a solver is a frozen record of settings, and its `steps` generates models.

The harness measures time inside `next()` only: while a solver is suspended at a `yield`, its model is
evaluated off the clock. A solver loops for ever, or returns once it has converged (a closed form yields
once); the harness enforces budgets and early stopping. All state is kept in the generator's local variables,
and all random numbers come from the given NumPy generator.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
Records = npt.NDArray[np.void]  # an array of a structured type
Flags = npt.NDArray[np.bool_]
Sums = tuple[Any, ...]  # what is summed over parts: arrays and numbers


class Dataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Determinism(Enum):
    """How exactly a solver repeats its results when it is run again with the same seed."""

    EXACT = "exact"  # the same bits for any number of threads
    FIXED_THREADS = "fixed-threads"  # the same bits for the same number of threads
    RACY = "racy"  # other bits: threads overwrite each other on purpose


class Model(Protocol):
    """A trained model: it scores (user, item) pairs."""

    def score(self, users: Ints, items: Ints, /) -> Floats:
        """One score per (user, item) pair, higher is better; NaN where the model has no score."""
        ...


@runtime_checkable
class ScoresAll(Protocol):
    """A model that scores many users for the whole catalogue at once, faster than pair by pair; optional."""

    def score_all(self, users: Ints, threads: int = 1, /) -> Floats:
        """users x items: the scores of all items for these users, with the same bits for any number of threads."""
        ...


@runtime_checkable
class RankingFunctions(Protocol):
    """A model in which all users weigh the same few linear functions of the item features; optional."""

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """The weights of the features, a column per function, and the weight that the mean user gives each function."""
        ...


@dataclass(frozen=True)
class Step:
    """A model during training, with its objective; the solver may change the model in place in its next step.

    After the last step the model stays unchanged.
    """

    model: Model
    objective: Callable[[], float] | None = None  # computed on request, off the clock
    gap: Callable[[], float] | None = None  # convex problems: an upper bound on objective - optimum
    bound: float | None = None  # parallel schedules: an upper bound on the speed-up by threads


class Solver(Protocol):
    """A learning algorithm: a frozen dataclass with the settings as fields.

    A solver declares the four properties as class variables; `needs_features` and `determinism` may also be
    computed properties that depend on a setting.
    """

    @property
    def learns_from(self) -> type | tuple[type, ...]:
        """The kind of data: `Ratings`, `Comparisons`, or a tuple of both with the preferred one first."""
        ...

    @property
    def needs_features(self) -> bool:
        """Whether it trains on item features; if not, it does not get them."""
        ...

    @property
    def determinism(self) -> Determinism:
        """How exactly the same seed repeats the results."""
        ...

    @property
    def version(self) -> int:
        """A number that is raised with every change of the results, so that stored results are recomputed."""
        ...

    # A solver annotates `train` with the kinds of data that it learns from. `offer` checks the kind at run time, so
    # the type is Any here.
    def steps(self, train: Any, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The models during training, one after each step."""
        ...


@runtime_checkable
class GoesOn(Protocol):
    """A solver that can start from the model of another penalty, and then needs fewer steps; optional.

    Its result must be the same to its tolerance, as for convex problems that it solves to a gap. `path` says whether
    the setting falls or rises along a path that begins with the strongest penalty: `{"lam": "falls"}`.
    """

    path: ClassVar[Mapping[str, Literal["falls", "rises"]]]

    def steps_from(self, model: Any, train: Any, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The models during training from this model on, one after each step."""
        ...


@runtime_checkable
class FoldsIn(Protocol):
    """A solver that fits users it was not trained on to the items of its model, which stay as they are; optional.

    Where it needs more than its model, `as_trained(train)` gives the solver with what it took from the training part as
    settings of its own; a method that a solver may have.
    """

    def fold_in(self, model: Any, ratings: Any, threads: int = 1) -> Model:
        """The model of the users of these ratings alone, numbered as there, and of the items of `model`.

        Each user gets what the solver's step for users would give, solved to the end. Ratings of items of which the
        model knows nothing are left out, and users without any other score NaN or tie, as they do in training.
        """
        ...


@dataclass(frozen=True)
class Needs:
    """What the `needs` of a solver says, a class variable or a property, where its training imports other packages."""

    modules: tuple[str, ...]  # that do not come with rankbench
    install: str  # the command that installs them


class Executor(Protocol):
    """Keeps the parts of a training set, in this process or in several, and calls functions on them.

    Functions and what they are given may travel to other processes: functions are those of a module or methods of the
    parts' class, and a part is the first argument of each. They may change their part.
    """

    def place(self, make: Callable[..., Any], own: Sequence[tuple[Any, ...]], *shared: Any) -> None:
        """Make part p as make(*own[p], *shared), where it is to stay."""
        ...

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """The sum over all parts of work(part, *shared), in an order that depends only on the number of parts."""
        ...

    def ask(self, work: Callable[..., Any], own: Mapping[int, tuple[Any, ...]], *shared: Any) -> dict[int, Any]:
        """What some parts answer: work(part, *own[p], *shared) for each part p in `own`."""
        ...


@runtime_checkable
class Partitioned(Protocol):
    """A solver that can train on parts of the users in several processes; optional."""

    @property
    def partitions(self) -> int:
        """How many parts there are; with 1 it trains in one process, by `steps`."""
        ...

    def steps_on(self, executor: Executor, train: Any, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """As `steps`, with the parts kept by the executor; `steps` gives the same numbers for the same `partitions`."""
        ...


@runtime_checkable
class Scattered(Protocol):
    """A model whose users' vectors stay with the parts of a training set; optional."""

    def gathered(self) -> Model:
        """The same model with the vectors of all users in this process."""
        ...

    def digest(self) -> str:
        """The hash of the gathered model's arrays, with the vectors of one part at a time in this process."""
        ...


class OwnMetric(Dataclass, Protocol):
    """A custom metric: a record with settings, averaged over users."""

    definition: str  # the meaning of the value, and the users left out
    better: Literal["higher", "lower"]
    limits: tuple[float, float]
    version: int

    def of_user(self, scores: Floats, ratings: Floats, /) -> float:
        """The value for one user from scores and ratings of the held-out items; NaN leaves the user out."""
        ...


DECLARATIONS = ("learns_from", "needs_features", "determinism", "version")
