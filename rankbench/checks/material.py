"""What the checks of a solver work with: small data sets, the first steps of a training, and fingerprints of models."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

import numpy as np

from rankbench.arrays.npz import fingerprint
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Flags, Floats, Ints, Model, Solver, Step
from rankbench.core.streams import stream
from rankbench.data.views import Comparisons, Ratings, View, offer
from rankbench.execution.worker import digest_of
from rankbench.models import ItemScores

STEPS = 5  # of a training that a check looks at
USERS, ITEMS, FEATURES = 72, 150, 5


def ratings() -> Ratings:
    """Tied ratings that features explain, the first and last user and item without any.

    User 1 has a single rating, user 2 rates all alike; the others have about 20 each.
    """
    rng = np.random.default_rng(7)
    features = rng.standard_normal((ITEMS, FEATURES))
    slopes = rng.standard_normal(FEATURES) + 0.5 * rng.standard_normal((USERS, FEATURES))
    values = np.round(slopes @ features.T)
    values[2] = 3.0
    rated = rng.random((USERS, ITEMS)) < rng.uniform(0.05, 0.25, (USERS, 1))
    rated[[0, 1, -1]] = rated[:, [0, -1]] = False
    rated[1, 5] = True
    users, items = np.nonzero(rated)
    return Ratings.from_triples(users, items, values[rated], USERS, ITEMS, features)


def _few(users: list[int], items: list[int], values: list[float], n_users: int, n_items: int) -> Ratings:
    features = np.random.default_rng(3).standard_normal((n_items, 2))
    columns = np.array(users, int), np.array(items, int), np.array(values, float)
    return Ratings.from_triples(*columns, n_users, n_items, features)


EDGES: Mapping[str, Callable[[], Ratings]] = MappingProxyType(
    {
        "empty": lambda: _few([], [], [], 3, 4),
        "one-user": lambda: _few([0] * 6, [0, 1, 2, 3, 4, 6], [1, 2, 3, 3, 5, 4], 1, 8),
        "one-item": lambda: _few([0, 1, 2], [0, 0, 0], [1, 2, 3], 3, 1),
        "one-comparison": lambda: _few([1, 1], [0, 2], [2, 1], 3, 4),
        "all-tied": lambda: _few([0, 0, 1, 1], [0, 1, 1, 2], [3, 3, 3, 3], 2, 3),
    }
)


@dataclass(frozen=True, eq=False)
class Subject:
    """The solver that is checked, the ratings that it learns from, and the numbers of threads that it runs with."""

    solver: Solver
    ratings: Ratings = field(default_factory=ratings)
    threads: tuple[int, ...] = (1, 2, 3)

    @property
    def record(self) -> Solver:
        """The solver, by the name that it has in what the checks of metrics get, too."""
        return self.solver

    @property
    def train(self) -> View:
        """What the harness would hand over."""
        return offer(self.solver, self.ratings)


def accepted(solver: Solver) -> tuple[type, ...]:
    """The kinds of data that the solver declares."""
    return solver.learns_from if isinstance(solver.learns_from, tuple) else (solver.learns_from,)


def run(solver: Solver, train: View, steps: int = STEPS, threads: int = 1, seed: int = 0) -> Iterator[Step]:
    """The first steps."""
    return islice(solver.steps(train, stream(seed), threads), steps)


def course(solver: Solver, train: View, threads: int = 1, seed: int = 0, look: bool = False) -> list[str]:
    """A fingerprint of everything that a model holds and says, after each of the first steps.

    With `look`, the objective and the gap of each step are asked for, as an evaluation does.
    """
    prints = []
    with one_blas_thread():
        for step in run(solver, train, STEPS, threads, seed):
            prints.append(print_of(step.model, train))
            if look:
                for ask in filter(None, (step.objective, step.gap)):
                    ask()
    return prints


def print_of(model: Model, view: View) -> str:
    """A fingerprint of a model's scores of all pairs, and of its arrays if it is a record of arrays."""
    return digest_of(model) + fingerprint(ItemScores(scores(model, view)))


def scores(model: Model, view: View) -> Floats:
    """The scores of all pairs of users and items."""
    return model.score(*all_pairs(view))


def all_pairs(view: View) -> tuple[Ints, Ints]:
    """Every user with every item."""
    users, items = np.indices((view.n_users, view.n_items), np.int32)
    return users.ravel(), items.ravel()


def must_score(train: View) -> Flags:
    """Which of all pairs must have a score: those of a user and an item that are in some comparison each."""
    pairs = train if isinstance(train, Comparisons) else train.comparisons()
    known_user, known_item = np.zeros(train.n_users, bool), np.zeros(train.n_items, bool)
    known_user[pairs.users] = known_item[pairs.better] = known_item[pairs.worse] = True
    return np.outer(known_user, known_item).ravel()
