"""EASE, a linear autoencoder of items in closed form (Steck, Embarrassingly shallow autoencoders, WWW 2019)."""

# Roof of steps by products, a product: 12 bytes; 2 flops; 1 / 8 lines.
# Roof of _weights, an item: 48 * items bytes; 2 * items flops; items ** 2 blas.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse
from scipy.linalg.lapack import dpotrf, dpotri

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.kernels.solvers import ease as kernel
from rankbench.methods.item_weights import Interactions, Values, nearest_items, with_users
from rankbench.models import ItemWeights
from rankbench.models.asking import sparse_rows
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Count, Least, Weight

_SINGULAR = "is singular to rounding: scale the ratings or raise lam"


@dataclass(frozen=True)
class EASE(Checked):
    """Weights between items that reconstruct each user's row from the user's other items, by ridge regression.

    min over B of |X - X B|^2 + lam |B|^2 with diag B = 0. With P = (X^T X + lam I)^-1 the
    solution is B = I - P diag(1 / diag P), one inverse of the items' Gram matrix by Cholesky: items^3 flops
    and two matrices of items^2 numbers, for the items that have a rating. The score of item i for user u is row u of
    X B at i. `values` says what a rating counts in X: 1 (binary, as in the paper), its value (ratings), or its value
    less the user's mean (centred). Ratings below `least` are left out. Items without a rating score NaN; for users
    without one all others tie.

    With `neighbours` the weights to an item come only from so many others, those of the highest cosine of their columns
    with its own, above 0: they minimise the same sum with all other weights held at 0, a system of equations for each
    item in place of the one inverse. So time and memory grow with the items and no more with their square, as long as
    the Gram matrix is sparse.
    """

    lam: Weight = 100.0
    values: Values = "binary"
    least: Least = None
    neighbours: Annotated[Count | None, AddedLater()] = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2  # systems of neighbours are solved without LAPACK

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """One model."""
        threads, rated = checked_threads(threads), Interactions.of(train, self.values, self.least)
        if self.neighbours is not None:
            yield Step(rated.model(self._sparse_weights(rated, self.neighbours, threads)))
            return
        gram = rated.gram(threads)
        np.fill_diagonal(gram, gram.diagonal() + self.lam)
        yield Step(rated.model(_weights(gram)))

    def _sparse_weights(self, rated: Interactions, neighbours: int, threads: int) -> scipy.sparse.csr_array:
        """B with the neighbours' weights alone: in column i those to item i."""
        nearest = nearest_items(rated.ratings, rated.norms(), 0.0, neighbours, threads)
        gram = rated.sparse_gram().T.tocsr()  # symmetric
        gram.sort_indices()
        failed = kernel.restricted(
            gram=sparse_rows(gram), neighbours=sparse_rows(nearest), lam=self.lam, out=nearest.data, threads=threads
        )
        if failed >= 0:
            raise UserError(f"the Gram matrix of item {failed}'s neighbours {_SINGULAR}", subject="EASE")
        return nearest.T.tocsr()

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> ItemWeights:
        """The model of these users: their rows, and the weights as they are."""
        checked_threads(threads)
        return with_users(model, ratings, self.values, self.least)


@one_blas_thread()
def _weights(gram: Floats) -> Floats:
    """B from X^T X + lam I."""
    factor, failed = dpotrf(gram.T, lower=False, overwrite_a=True)  # gram is symmetric; its transpose is by columns
    inverse, singular = dpotri(factor, lower=False, overwrite_c=True) if not failed else (factor, failed)
    if singular:
        raise UserError(f"the Gram matrix of the items {_SINGULAR}", subject="EASE")
    upper = np.triu(inverse, 1)
    weights: Floats = np.add(upper, upper.T, order="C")
    np.negative(weights, out=weights)
    weights /= inverse.diagonal()
    return weights
