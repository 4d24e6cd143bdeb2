"""Pairwise stochastic gradient descent on factors (Park and Zhang 2014, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Comparisons
from rankbench.kernels import sgd as kernel
from rankbench.models import Factors
from rankbench.specs import Limits, check

_LOSSES = {"squared-hinge": kernel.SQUARED_HINGE, "logistic": kernel.LOGISTIC}
_LANES = 4  # the kernel's rows are padded to whole lanes; the padding is zero and stays so


@dataclass(frozen=True)
class SGD:
    """A vector per user and item, by stochastic gradient descent over comparisons, user by user.

    min over U, V of sum L(u_i . (v_j - v_k)) + lam/2 (|U|^2 + |V|^2), one comparison at a time. With g
    = L'(margin), each update takes u_i -= eta (g (v_j - v_k) + lam/|Omega_i| u_i), v_j -= eta (g u_i +
    lam/|Omega^j| v_j), v_k -= eta (-g u_i + lam/|Omega^k| v_k), all from the old values, and eta = step
    / (1 + decay t) after t updates. (The report's Algorithms 1 and 2 print the data terms with the
    wrong sign, update v from the new u, and skip the regulariser where the margin is met; these are the
    formulas of its text.) A pass visits users in random order and each user's comparisons in random
    order. Users and items that are in no comparison score NaN.
    """

    rank: Annotated[int, Limits(low=1)] = 10
    lam: Annotated[float, Limits(low=0)] = 0.1
    step: Annotated[float, Limits(above=0)] = 0.05
    decay: Annotated[float, Limits(low=0)] = 1e-5
    loss: Literal["squared-hinge", "logistic"] = "squared-hinge"
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass over all comparisons."""
        per_user = np.diff(train.indptr)
        per_item = np.bincount(train.better, minlength=train.n_items) + np.bincount(
            train.worse, minlength=train.n_items
        )
        users, items = (_start(rng, counts, self.rank) for counts in (per_user, per_item))
        shrink_users, shrink_items = (self.lam / np.maximum(counts, 1) for counts in (per_user, per_item))
        rows = (train.indptr, train.better, train.worse)
        loss = _LOSSES[self.loss]
        model = Factors(users[:, : self.rank], items[:, : self.rank])
        seen = per_user > 0, per_item > 0

        def objective() -> float:
            losses = np.zeros(train.n_users)
            if len(train):
                kernel.losses(loss, *rows, users, items, losses, threads)
            size = sum(np.square(block[kept]).sum() for block, kept in zip((users, items), seen, strict=True))
            return float(losses.sum() + self.lam / 2 * size)

        yield Step(model, objective)
        updates = 0
        while len(train):
            kernel.serial_pass(
                loss, *rows, users, items, shrink_users, shrink_items, self.step, self.decay, updates, rng
            )
            updates += len(train)
            yield Step(model, objective)


def _start(rng: np.random.Generator, counts: Ints, rank: int) -> Floats:
    """Normal rows of expected length one, padded to whole lanes; NaN for whoever is never compared."""
    rows = np.zeros((len(counts), -(-rank // _LANES) * _LANES))
    rows[:, :rank] = rng.standard_normal((len(counts), rank)) / np.sqrt(rank)
    rows[counts == 0] = np.nan
    return rows
