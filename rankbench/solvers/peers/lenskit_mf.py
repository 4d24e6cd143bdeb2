"""Matrix factorization with biases, by alternating least squares of the package LensKit (Ekstrand 2020)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Needs, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Rank, Weight

_INSTALL = 'pip install "rankbench[lenskit]"'


@dataclass(frozen=True)
class LensKitMF(Checked):
    """`lenskit.als.BiasedMFScorer`: ratings less a mean and biases of users and items, fitted by products of vectors.

    A bias is the sum of what is left of the ratings, divided by their number plus `damping`: first each item's, then
    each user's. A step is one epoch of the package, which solves for the vectors of all users, then of all items, in
    single precision; the penalty of a vector is `lam` times its number of ratings. A score is the predicted rating.
    LensKit takes the number of threads of the first training in a process, and keeps it: results do not depend on it.
    Users and items without a rating score NaN.
    """

    rank: Rank = 10
    lam: Weight = 0.1
    damping: Annotated[float, Limits(low=0, high=1e12)] = 5.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    title: ClassVar = "MF of LensKit"
    needs: ClassVar = Needs(("lenskit.als",), _INSTALL)

    def steps(  # pragma: no cover: only with the extra lenskit
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each epoch."""
        threads = checked_threads(threads)
        package = peers.required("lenskit.als", "LensKitMF", _INSTALL)
        options = peers.required("lenskit.training", "LensKitMF", _INSTALL).TrainingOptions(rng=rng)
        if not len(train):
            yield Step(peers.nothing_learned(train, self.rank))
            return
        scorer = package.BiasedMFScorer(embedding_size=self.rank, regularization=self.lam, damping=self.damping)
        with _training():
            peers.required("lenskit.parallel", "LensKitMF").initialize(processes=1, threads=threads, backend_threads=1)
            trainer = scorer.create_trainer(_data(train), options)
        while True:
            with _training():
                trainer.train_epoch()
            yield Step(_model(scorer, train))


@contextmanager
def _training() -> Iterator[None]:  # pragma: no cover: only with the extra lenskit
    """A context in which LensKit works without its warnings, and a panic of its part in Rust becomes one line."""
    log = logging.getLogger("lenskit")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with peers.fitting("LensKitMF"), one_blas_thread():
            yield
    except BaseException as reason:
        if type(reason).__name__ != "PanicException":  # which cannot be imported, and is no Exception
            raise
        problem, remedy = f"the package gave up: {reason}", "raise the penalty, or scale the ratings"
        raise UserError(problem, subject="LensKitMF", remedy=remedy) from None
    finally:
        log.setLevel(level)


def _data(train: Ratings) -> Any:  # pragma: no cover: only with the extra lenskit
    """The ratings as LensKit takes them, with our numbers of all users and items."""
    rows = peers.required("pandas", "LensKitMF").DataFrame(
        {"user_id": train.users, "item_id": train.items, "rating": train.values}
    )
    users, items = np.arange(train.n_users), np.arange(train.n_items)
    return peers.required("lenskit.data", "LensKitMF").from_interactions_df(rows, users=users, items=items)


def _model(scorer: Any, train: Ratings) -> Factors:  # pragma: no cover: only with the extra lenskit
    """The predicted ratings: the products of vectors, with biases and the mean as two more columns."""
    bias = scorer.bias
    users = [scorer.user_embeddings, bias.user_biases + bias.global_bias, np.ones(train.n_users)]
    items = [scorer.item_embeddings, np.ones(train.n_items), bias.item_biases]
    return peers.factors_of(np.column_stack(users), np.column_stack(items), train)
