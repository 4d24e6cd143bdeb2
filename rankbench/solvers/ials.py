"""Alternating least squares on all pairs of users and items, rated or not (Hu et al. 2008, Rendle et al. 2021)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Flags, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.by_item import by_columns, counted
from rankbench.data.views import Ratings
from rankbench.kernels.methods import als as kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.methods.entries import known_rows
from rankbench.methods.folding import vectors_of_items
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least, Rank, Weight

_START = 0.1  # the standard deviation of an item's vector at the start, times the root of its length


@dataclass(frozen=True)
class IALS(Checked):
    """A vector per user and item, whose inner products are near 1 for what is rated and near 0 for everything else.

    min over U, V of sum over ratings of (1 - u_i . v_j)^2 + unrated sum over all pairs of (u_i . v_j)^2
    + lam (sum_i (n_i + unrated m)^power |u_i|^2 + sum_j (n_j + unrated n)^power |v_j|^2), where n_i and n_j count the
    ratings of a user and an item, and n users and m items have any. Each half step solves a ridge regression per row
    by Cholesky, or comes nearer to it by `inner` iterations of conjugate gradients; or with `block` by solving for so
    many numbers of a vector at a time while the others stay, once over all of them or `inner` times (iALS++). None of
    these ever raises the objective. The sum over all pairs enters by the other side's Gram matrix, so that a step costs
    no more for the pairs that are not rated. How a user rated an item is nothing to it, but ratings below `least` are
    left out. Users and items without a rating score NaN.
    """

    rank: Rank = 32
    lam: Weight = 0.003
    unrated: Weight = 0.1
    power: Annotated[float, Limits(low=0, high=2)] = 1.0
    inner: Count | None = None
    least: Least = None
    block: Annotated[Count | None, AddedLater()] = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "iALS"
    version: ClassVar = 2  # the systems are solved without LAPACK

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, with zero vectors for users, then a model after each half step: users, items, users, ..."""
        threads = checked_threads(threads)
        kept = train.at_least(self.least)
        known = np.diff(train.indptr) > 0, counted(train.items, train.n_items) > 0
        items = rng.standard_normal((train.n_items, self.rank)) * (_START / np.sqrt(self.rank))
        items[counted(kept.items, train.n_items) == 0] = 0.0
        users = np.zeros((train.n_users, self.rank))
        ones = np.ones(len(kept))
        by_user = SparseRows(indptr=kept.indptr, columns=kept.items, values=ones)
        by_item = by_columns(kept.indptr, kept.items, ones, train.n_items)
        more = [self.unrated * side.sum() for side in known[::-1]]  # for users, the items
        counts = np.diff(kept.indptr), counted(kept.items, train.n_items)
        scales = [self.lam * (count + add) ** self.power for count, add in zip(counts, more, strict=True)]

        def objective() -> float:
            errors = np.zeros(train.n_users)
            if len(kept):
                kernel.squared_errors(rows=by_user, left=users, vectors=items, out=errors, threads=threads)
            with one_blas_thread():
                everywhere = self.unrated * np.vdot(users.T @ users, items.T @ items)
            sizes = (scale @ np.square(side).sum(axis=1) for scale, side in zip(scales, (users, items), strict=True))
            return float(errors.sum() + everywhere + sum(sizes))

        while True:
            yield Step(_model(users, items, known), objective)
            if not len(kept):
                return
            self._half("user", by_user, items, users, more[0], threads)
            yield Step(_model(users, items, known), objective)
            self._half("item", by_item, users, items, more[1], threads)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each with the exact half step from the items' vectors."""
        threads, items = checked_threads(threads), vectors_of_items(model, ratings, self.rank)
        known = ~np.isnan(items[:, 0])
        vectors = np.where(known[:, None], items, 0.0)
        rated = ratings.where(known[ratings.items])
        kept = rated.at_least(self.least)
        rows = SparseRows(indptr=kept.indptr, columns=kept.items, values=np.ones(len(kept)))
        users = np.zeros((ratings.n_users, self.rank))
        replace(self, inner=None, block=None)._half("user", rows, vectors, users, self.unrated * known.sum(), threads)
        users[np.diff(rated.indptr) == 0] = np.nan
        return Factors(users, items)

    def _half(self, kind: str, rows: SparseRows, fixed: Floats, moving: Floats, more: float, threads: int) -> None:
        """Solve or improve every row's ridge regression on the other side's vectors, in place."""
        products = np.empty((self.rank, self.rank))
        kernel.gram(vectors=fixed, out=products)
        each = np.full(self.rank, self.lam)
        penalties = kernel.Ridge(each=each, power=self.power, more=more, form=self.unrated * products)
        given: dict[str, Any] = {"rows": rows, "vectors": fixed, "penalties": penalties}
        if self.block is not None:
            for _ in range(self.inner or 1):
                failed = kernel.sweep_ridge(**given, block=self.block, out=moving, threads=threads)
        elif self.inner is None:
            failed = kernel.ridge(**given, out=moving, threads=threads)
        else:
            failed = kernel.improve_ridge(**given, iterations=self.inner, out=moving, threads=threads)
        if failed >= 0:
            raise UserError(f"the system of {kind} {failed} has no finite solution: raise lam", subject="IALS")


def _model(users: Floats, items: Floats, known: tuple[Flags, Flags]) -> Factors:
    """The vectors as they are, NaN for users and items without a rating."""
    return Factors(known_rows(users, known[0]), known_rows(items, known[1]))
