"""What solvers that call other packages share: the import, and training data in the form that these packages take."""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.core.contract import Floats, Ints, Step
from rankbench.core.errors import UserError
from rankbench.data.by_item import counted
from rankbench.data.views import Ratings
from rankbench.features.matrix import DenseFeatures, Features
from rankbench.methods.entries import known_rows
from rankbench.models import Factors

INSTALL = 'pip install "rankbench[peers]"'

Counts = Literal["binary", "ratings"]  # what a rating counts: 1, or its value

_LEVELS = 31  # LightGBM and XGBoost refuse more with the gain 2^level - 1


def required(module: str, solver: str, remedy: str = INSTALL) -> Any:
    """The module; an error that says how to install it if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UserError(f"needs the package {package}, which is not installed", subject=solver, remedy=remedy) from None


@contextmanager
def fitting(  # pragma: no cover: only with the extra peers
    solver: str, error: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """A context in which a package trains without showing warnings, and its `error` becomes one line.

    Some packages raise such an error for numbers that overflowed. Where there is none, the harness finds them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except error as reason:
        remedy = "scale the ratings, lower the step or the penalty, or raise the penalty"
        raise UserError(f"the package gave up: {reason}", subject=solver, remedy=remedy) from None


def counts_of(  # pragma: no cover: only with the extra peers
    train: Ratings, values: Counts, least: float | None
) -> scipy.sparse.csr_matrix:
    """users x items: what each rating of at least `least` counts, in single precision."""
    kept = train.at_least(least)
    entries = np.ones(len(kept), np.float32) if values == "binary" else kept.values.astype(np.float32)
    indptr = kept.indptr.astype(np.int32) if len(kept) <= np.iinfo(np.int32).max else kept.indptr
    return scipy.sparse.csr_matrix((entries, kept.items.copy(), indptr), (train.n_users, train.n_items))


def factors_of(  # pragma: no cover: only with the extra peers
    users: npt.NDArray[Any], items: npt.NDArray[Any], train: Ratings
) -> Factors:
    """The model of these vectors, in double precision; NaN for users and items without a rating."""
    known = np.flatnonzero(np.diff(train.indptr)), np.flatnonzero(counted(train.items, train.n_items))
    return Factors(
        *(known_rows(np.asarray(rows, np.float64), own) for rows, own in zip((users, items), known, strict=True))
    )


def nothing_learned(train: Ratings, rank: int) -> Factors:  # pragma: no cover: only with the extra peers
    """The model of data without a rating that counts: all known items tie."""
    return factors_of(np.zeros((train.n_users, rank)), np.zeros((train.n_items, rank)), train)


def table_of(features: Features) -> Any:  # pragma: no cover: only with the extra peers
    """The features in the kinds of matrix that these packages know: an array, or a CSR matrix of SciPy's older kind."""
    return features.matrix if isinstance(features, DenseFeatures) else scipy.sparse.csr_matrix(features.matrix)


def with_zero_row(rows: Any) -> Any:  # pragma: no cover: only with the extra peers
    """The matrix of one row with a row of zeros below it."""
    if scipy.sparse.issparse(rows):
        return scipy.sparse.vstack([rows, scipy.sparse.csr_matrix(rows.shape)], format="csr")
    return np.concatenate([rows, np.zeros_like(rows)])


def levels_of(values: Floats) -> Ints:  # pragma: no cover: only with the extra peers
    """Ratings as whole numbers from 0: their rank among the distinct ones, in at most 31 levels of such ranks."""
    distinct, rank = np.unique(values, return_inverse=True)
    if len(distinct) > _LEVELS:
        rank = rank * _LEVELS // len(distinct)
    return np.asarray(rank)


def cornac_data(train: Ratings, values: Floats) -> Any:  # pragma: no cover: only with the extra peers
    """The ratings with these values as cornac takes them."""
    package = required("cornac.data", "cornac")
    users, items = ({number: number for number in range(size)} for size in (train.n_users, train.n_items))
    columns = train.users.astype(np.int64), train.items.astype(np.int64), values
    return package.Dataset(train.n_users, train.n_items, users, items, columns)


def cornac_passes(  # pragma: no cover: only with the extra peers
    trained: Any, solver: str, data: Any, train: Ratings, threads: int
) -> Iterator[Step]:
    """The model after each further pass of a cornac model over this data, with the biases of items."""
    trained.num_threads = threads  # with a seed, which also draws the start, it would take one alone
    while True:
        with fitting(solver):
            trained.fit(data)
        users = np.column_stack([trained.u_factors, np.ones(train.n_users)])
        items = np.column_stack([trained.i_factors, trained.i_biases])
        yield Step(factors_of(users, items, train))
