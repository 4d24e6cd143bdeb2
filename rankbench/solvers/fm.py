"""A factorization machine of second order on comparisons, with item features (Rendle 2010)."""

# Roof of Machine, a user or an item: 80 * rank bytes; 12 * rank flops.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.data.views import Comparisons, View
from rankbench.features.matrix import Features
from rankbench.methods.descent import descend
from rankbench.methods.entries import ComparedEntries
from rankbench.methods.factors import zero_rows
from rankbench.methods.folding import own, users_of_pairs
from rankbench.methods.losses import CODES, SmoothLoss
from rankbench.methods.penalties import squared_norm
from rankbench.methods.tasks import checked_features, given_features
from rankbench.models import Factors
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Rank, Weight

_SPREAD = 0.1  # the standard deviation of the vectors at the start: 0 is a saddle point


@dataclass(frozen=True)
class FM(Checked):
    """A factorization machine of user, item and item features, trained so that better items score above worse ones.

    The machine's input has one entry of 1 for the user, one for the item, and the item's features x. Each input has a
    weight and a vector, and the score is the sum over inputs of weight times value and over pairs of inputs of the
    product of their values and of their vectors' inner product (eq. 1 of the paper). With g_j = q_j + V^T x_j it is
    p_i . g_j + b_j, where b_j = a_j + w . x_j + (|g_j|^2 - |q_j|^2 - sum_f x_jf^2 |v_f|^2) / 2 is the identity by
    which all pairs of inputs are summed in a time linear in the values that are not 0. What depends on the user alone
    changes no order and is left out. min of the sum over comparisons of the loss of s_better - s_worse, plus
    lam / 2 times the squares of all parameters, by limited-memory BFGS: a step is one iteration, and the objective
    never rises. It is not convex; all vectors start as small random numbers. Ratings are learned as the comparisons
    that they imply. Items without a comparison score by their features, users without one have p = 0. With
    features=none the machine has users and items only, and items without a comparison score NaN.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    loss: SmoothLoss = "logistic"
    features: Literal["given", "none"] = "given"
    learns_from: ClassVar = Comparisons
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    title: ClassVar = "factorization machine"

    @property
    def needs_features(self) -> bool:
        """Whether items must come with features: not where `features=none`."""
        return self.features == "given"

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each iteration."""
        threads = checked_threads(threads)
        features = checked_features(given_features(train, "FM")) if self.needs_features else None
        machine = Machine(self.lam, self.loss, ComparedEntries.of(train, threads), features)
        for point in descend(machine.objective, machine.start(rng, self.rank)):
            yield Step(machine.model(point.x), lambda value=point.value: value)  # type: ignore[misc]
            if not len(train):
                return

    @one_blas_thread()
    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each with the vector p that is best with the items of the model as they are."""
        known = own(model, Factors)
        users, _ = users_of_pairs(known, ratings, CODES[self.loss], 1 / self.lam, checked_threads(threads), biased=True)
        return Factors(np.column_stack([users, np.ones(len(users))]), known.items)


class _Parts(NamedTuple):
    """The parameters, as views of one vector."""

    users: Floats  # P
    items: Floats  # Q
    features: Floats  # V
    item_weights: Floats  # a
    feature_weights: Floats  # w


class Machine:
    """A factorization machine on some comparisons: its objective, gradient and model."""

    def __init__(self, lam: float, loss: str, compared: ComparedEntries, features: Features | None) -> None:
        self.lam, self.loss, self.compared, self.features = lam, loss, compared, features
        self.squares = None if features is None else features.squared()
        self.n_users, self.n_items = compared.entries.shape
        self.n_features = 0 if features is None else features.shape[1]

    def start(self, rng: np.random.Generator, rank: int) -> Floats:
        """All parameters: small random vectors, weights of 0, and zeros for users and items without a comparison."""
        known_users, known_items = self.compared.entries.seen
        sizes = self.n_users, self.n_items, self.n_features
        users, items, features = (_SPREAD * rng.standard_normal((size, rank)) for size in sizes)
        users[np.setdiff1d(np.arange(self.n_users), known_users)] = 0.0
        items[np.setdiff1d(np.arange(self.n_items), known_items)] = 0.0
        return np.concatenate(
            [users.ravel(), items.ravel(), features.ravel(), np.zeros(self.n_items + self.n_features)]
        )

    def objective(self, x: Floats) -> tuple[float, Floats]:
        """The sum of the losses plus lam / 2 |x|^2, and its gradient."""
        parts = self._parts(x)
        vectors, users, items = self._product(parts)
        loss, of_users, of_items = self.compared.gradients(self.loss, users, items)
        rank = vectors.shape[1]
        of_users, of_vectors, of_terms = of_users[:, :rank], of_items[:, :rank], of_items[:, rank : rank + 1]
        of_vectors = of_vectors + of_terms * vectors  # b has |g|^2 / 2
        gradient = [of_users, of_vectors - of_terms * parts.items]
        if self.features is not None and self.squares is not None:
            of_features = self.features.transposed_times(of_vectors)
            gradient += [of_features - self.squares.transposed_times(of_terms) * parts.features, of_terms]
            gradient += [self.features.transposed_times(of_terms)]
        else:
            gradient += [of_terms]
        return loss + self.lam / 2 * squared_norm(x), np.concatenate([part.ravel() for part in gradient]) + self.lam * x

    def model(self, x: Floats) -> Factors:
        """The machine as factors of users and items."""
        width = self._rank(x) + 1
        users, items = (side[:, :width].copy() for side in self._product(self._parts(x))[1:])
        if self.features is None:
            items[np.setdiff1d(np.arange(self.n_items), self.compared.entries.seen[1])] = np.nan
        return Factors(users, items)

    def _rank(self, x: Floats) -> int:
        weights = self.n_items + self.n_features
        return (len(x) - weights) // max(1, self.n_users + weights)

    def _parts(self, x: Floats) -> _Parts:
        rank = self._rank(x)
        rows = self.n_users, self.n_items, self.n_features
        ends = np.cumsum([rank * size for size in rows] + [self.n_items])
        users, items, features, of_items, of_features = np.split(x, ends)
        p, q, v = (part.reshape(size, rank) for part, size in zip((users, items, features), rows, strict=True))
        return _Parts(p, q, v, of_items, of_features)

    def _product(self, parts: _Parts) -> tuple[Floats, Floats, Floats]:
        """The vectors g of the items; and (p, 1) of users and (g, b) of items in whole lanes, whose product scores."""
        vectors, terms = parts.items.copy(), parts.item_weights.copy()
        if self.features is not None and self.squares is not None:
            vectors += self.features.times(parts.features)
            of_pairs = np.square(vectors).sum(axis=1) - np.square(parts.items).sum(axis=1)
            of_pairs -= self.squares.times(np.square(parts.features).sum(axis=1))
            terms += self.features.times(parts.feature_weights) + of_pairs / 2
        rank = vectors.shape[1]
        users, items = (zero_rows(size, rank + 1) for size in (self.n_users, self.n_items))
        users[:, :rank], users[:, rank] = parts.users, 1.0
        items[:, :rank], items[:, rank] = vectors, terms
        return vectors, users, items
