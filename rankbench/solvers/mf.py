"""Matrix factorization of ratings by alternating least squares, without features (Koren et al. 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.by_item import by_columns, counted
from rankbench.data.views import Ratings
from rankbench.kernels.methods import als as kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.methods.folding import vectors_of_items
from rankbench.methods.tasks import Centre, ordered, targets
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Rank, Weight


@dataclass(frozen=True)
class MF(Checked):
    """A vector per user and item, with inner products fitted to the ratings by alternating least squares.

    min over U, V of sum over ratings of (y_ij - u_i . v_j)^2 + lam (|U|^2 + |V|^2). Each half step solves
    a ridge regression per row by Cholesky, or comes nearer to its solution by `inner` iterations of conjugate
    gradients from the row's last vector: with three, a step is faster from rank 32 on, and falls nearly as far. Either
    way the objective never rises. `centre=user` fits the ratings
    less each user's mean, which does not change a user's order. Users whose ratings are all equal contribute
    nothing and score zero for every item; users and items in no training row score NaN.

    With `biases` the errors are y_ij - mu - b_i - c_j - u_i . v_j, and biases (|b|^2 + |c|^2) is added to the penalty.
    mu is the mean of all y_ij, which is the best constant while all else is zero; it is fixed, and has no penalty. A
    half step solves for the bias and the vector of each row together. With centre=none a score is the predicted
    rating, and users whose ratings are all equal contribute like others; with centre=user it lacks the user's mean,
    and these users score mu + c_j.

    With `power` above 0 the penalties of a user or item with n ratings are n^power times as large: with 1 each rating
    brings its own, as in ALS-WR (Zhou et al. 2008), so that what is rated often is not fitted as if without a penalty.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    centre: Centre = "user"
    inner: Annotated[Count | None, AddedLater()] = None
    biases: Annotated[Weight | None, AddedLater()] = None
    power: Annotated[float, Limits(low=0, high=2), AddedLater()] = 0.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 3  # 2: items rated only by users without an order score zero, not NaN; 3: without LAPACK

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, with zero vectors for users, then a model after each half step: users, items, users, ..."""
        threads = checked_threads(threads)
        kept = self._kept(train)
        values, mean = targets(kept, self.centre), 0.0
        if self.biases is not None and len(kept):
            mean = float(values.mean())
            values = values - mean
        users, items = self._start(train, kept, rng)
        by_user = SparseRows(indptr=kept.indptr, columns=kept.items, values=values)
        by_item = by_columns(kept.indptr, kept.items, values, train.n_items)

        counts = np.diff(kept.indptr), counted(kept.items, train.n_items)
        scales = [count.astype(np.float64)[:, None] ** self.power for count in counts]

        def objective() -> float:
            errors = np.zeros(train.n_users)
            if len(kept):
                kernel.squared_errors(rows=by_user, left=users, vectors=items, out=errors, threads=threads)
            return float(errors.sum() + self._size(users, items, scales))

        while True:
            yield Step(self._model(users, items, mean), objective)
            if not len(kept):
                return
            self._half("user", by_user, items, users, threads)
            yield Step(self._model(users, items, mean), objective)
            self._half("item", by_item, users, items, threads)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each with the exact half step from the items' vectors."""
        threads, items = checked_threads(threads), vectors_of_items(model, ratings, len(self._penalties("user")))
        known = ratings.where(~np.isnan(items[ratings.items, 0]))
        kept = self._kept(known)
        rows = SparseRows(indptr=kept.indptr, columns=kept.items, values=targets(kept, self.centre))
        users = self._no_users(known)
        replace(self, inner=None)._half("user", rows, items, users, threads)
        return Factors(users, items)

    def _kept(self, train: Ratings) -> Ratings:
        """The ratings that count: of all users if scores are predicted ratings, else of those whose ratings differ."""
        return train if self.biases is not None and self.centre == "none" else ordered(train)

    def _no_users(self, train: Ratings) -> Floats:
        """Zero vectors for users, with biases [U, b, 1]; NaN for those without a rating."""
        users = np.zeros((train.n_users, len(self._penalties("user"))))
        if self.biases is not None:
            users[:, -1] = 1.0
        users[np.diff(train.indptr) == 0] = np.nan
        return users

    def _start(self, train: Ratings, kept: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Zero vectors for users and random ones for items; with biases [U, b, 1] and [V, 1, c], b and c being zero."""
        items = rng.standard_normal((train.n_items, self.rank)) / np.sqrt(self.rank)
        items[counted(kept.items, train.n_items) == 0] = 0.0  # rated by no user with an order
        if self.biases is not None:
            items = np.pad(items, ((0, 0), (0, 2)))
            items[:, -2] = 1.0
        items[counted(train.items, train.n_items) == 0] = np.nan
        return self._no_users(train), items

    def _model(self, users: Floats, items: Floats, mean: float) -> Factors:
        """The vectors as they are; with biases the mean is added to the items' ones."""
        if self.biases is None:
            return Factors(users, items)
        return Factors(users, items + np.append(np.zeros(self.rank + 1), mean))

    def _size(self, users: Floats, items: Floats, scales: list[Floats]) -> float:
        """The penalty of the vectors, and of the biases if there are any; each row's is scaled."""
        rank, (of_users, of_items) = self.rank, scales
        size = self.lam * (np.nansum(of_users * users[:, :rank] ** 2) + np.nansum(of_items * items[:, :rank] ** 2))
        if self.biases is not None:
            biases = of_users[:, 0] * users[:, rank] ** 2, of_items[:, 0] * items[:, rank + 1] ** 2
            size += self.biases * (np.nansum(biases[0]) + np.nansum(biases[1]))
        return float(size)

    def _penalties(self, kind: str) -> Floats:
        """The penalty of each coordinate of a row; the ones that stand for the other side's biases are held."""
        vector = [self.lam] * self.rank
        if self.biases is None:
            return np.array(vector)
        return np.array([*vector, self.biases, np.inf] if kind == "user" else [*vector, np.inf, self.biases])

    def _half(self, kind: str, rows: SparseRows, fixed: Floats, moving: Floats, threads: int) -> None:
        """Solve or improve every row's ridge regression on the other side's vectors, in place; rows of NaN stay NaN."""
        unknown, penalties = np.isnan(moving[:, 0]), kernel.Ridge(each=self._penalties(kind), power=self.power)
        given: dict[str, Any] = {"rows": rows, "vectors": fixed, "penalties": penalties}
        if self.inner is None:
            failed = kernel.ridge(**given, out=moving, threads=threads)
        else:
            moving[unknown] = 0.0
            failed = kernel.improve_ridge(**given, iterations=self.inner, out=moving, threads=threads)
        moving[unknown] = np.nan
        if failed >= 0:
            problem = f"the system of {kind} {failed} has no finite solution: scale the ratings or raise lam"
            raise UserError(problem, subject="MF")
