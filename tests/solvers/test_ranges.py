"""At the ends of the ranges of settings every solver ends with finite scores, or says that it has none."""

import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from math import inf, isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import scipy.sparse
from solvers.contract import ratings

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Solver
from rankbench.core.errors import UserError
from rankbench.core.packages import missing
from rankbench.core.streams import stream
from rankbench.data.views import Ratings, offer
from rankbench.execution.training import fit
from rankbench.names import Limits, show
from rankbench.solvers import SOLVERS

STEPS = 6
SMALL = {"rank": 3, "planes": 20}  # a rank of no more than the data has features
VARIANTS = {
    "altsvm": ({}, {"loss": "hinge"}),
    "cofirank": ({}, {"loss": "ordinal"}, {"loss": "regression"}),
    "convex-erm": ({}, {"loss": "smooth-hinge"}),
    "fm": ({}, {"loss": "squared-hinge"}),
    "frsvm": ({}, {"start": "random"}),
    "global": ({}, {"loss": "logistic"}),
    "mprank": ({}, {"kernel": "gaussian"}, {"kernel": "polynomial"}, {"choose": "C-per-user"}),
    "robirank": ({}, {"among": "catalogue"}),
    "sgd": ({}, {"loss": "logistic"}, {"schedule": "tournament"}),
    "smc": ({}, {"centred": True}),
    "svrank": ({}, {"kernel": "gaussian"}, {"kernel": "polynomial"}, {"form": "residuals"}),
}


def small() -> Ratings:
    """A part of the contract's data."""
    whole = ratings()
    few = Ratings.from_triples(whole.users, whole.items, whole.values, whole.n_users, whole.n_items)
    rows = np.flatnonzero((few.users < 18) & (few.items < 60))
    return replace(few.take(rows), item_features=whole.item_features)


def ends(cls: type) -> Iterator[tuple[str, float]]:
    """Each setting that is a number with a fraction, with the first and the last value that it may have."""
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        for limits in limits_of(hints[field.name]):
            low = limits.low if limits.low is not None else np.nextafter(limits.above, inf)
            high = limits.high if limits.high is not None else np.nextafter(limits.below, -inf)
            yield from ((field.name, float(low)), (field.name, float(high)))


def limits_of(hint: Any) -> Iterator[Limits]:
    """The limits of a number with a fraction, or of such a number or None."""
    inner, *notes = get_args(hint) or (hint,)
    if get_origin(hint) is Annotated and inner is float:
        yield from (note for note in notes if isinstance(note, Limits))
    else:
        found = (list(limits_of(kind)) for kind in ([inner] if get_origin(hint) is Annotated else get_args(hint)))
        yield from next(filter(None, found), [])


def cases() -> list[Any]:
    """Every end of every range of every solver, in each of its variants."""
    return [
        pytest.param(name, variant, setting, value, id=f"{show(name, variant)}-{setting}={value:g}")
        for name in SOLVERS.entries
        for variant in VARIANTS.get(name, ({},))
        for setting, value in ends(SOLVERS.find(name))
    ]


def solver_of(name: str, variant: dict[str, Any]) -> Solver:
    """The solver in this variant, with few planes and a rank that suits the data."""
    cls = SOLVERS.find(name)
    known = {field.name for field in fields(cls)}
    return cls(**{key: value for key, value in SMALL.items() if key in known}, **variant)


@pytest.mark.parametrize("name", SOLVERS.entries)
def test_every_number_with_a_fraction_has_a_finite_range(name):
    cls = SOLVERS.find(name)
    numbers = {field.name for field in fields(cls) if "float" in str(field.type)}
    assert {setting for setting, _ in ends(cls)} == numbers
    assert all(isfinite(value) for _, value in ends(cls))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant", "setting", "value"), cases())
def test_at_an_end_of_a_range_scores_are_finite_or_it_is_said(name, variant, setting, value):
    solver, train = replace(solver_of(name, variant), **{setting: value}), small()
    skip_without_its_package(solver)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = fit(solver, train, steps=STEPS)
        except UserError as error:
            assert len(str(error).splitlines()) == 1
            assert "scale" in str(error) or "raise" in str(error) or "lower" in str(error)
            return
    rows = train.has_order[train.users]
    users, items = np.unique(train.users[rows]), np.unique(train.items[rows])
    assert np.isfinite(model.score(np.repeat(users, len(items)), np.tile(items, len(users)))).all()


@pytest.mark.parametrize("name", SOLVERS.entries)
def test_a_bad_setting_is_named(name):
    cls = SOLVERS.find(name)
    for setting, value in refused_values(cls):
        with pytest.raises(UserError, match=f"^{cls.__name__}: (unknown value of )?{setting}"):
            cls(**{setting: value})
        with pytest.raises(UserError, match=f"^{name}: (unknown value of )?{setting}"):
            SOLVERS.make(f"{name}[{setting}={value}]")


@pytest.mark.parametrize("name", ["altsvm", "bpr", "lcr", "robirank", "sgd"])
def test_a_rank_above_both_sides_is_refused(name):
    train, cls = offer(SOLVERS.make(name), small()), SOLVERS.find(name)
    largest = max(train.n_users, train.n_items)
    next(cls(rank=largest).steps(train, stream(0)))
    sides = f"{train.n_users} users and {train.n_items} items: take at most {largest}"
    with pytest.raises(UserError, match=f"{cls.__name__}: rank={largest + 1} is larger than both sides, {sides}"):
        next(cls(rank=largest + 1).steps(train, stream(0)))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    "name", ["frsvm", "imc", "ranksvm-joint", "ranksvm-nuclear", "ranksvm-separate", "ranksvm-var"]
)
def test_features_that_are_all_zero_are_refused(name, kind):
    train = small()
    solver = solver_of(name, {})
    with pytest.raises(UserError, match="item features are all zero: no function of them ranks anything"):
        fit(solver, replace(train, item_features=kind(np.zeros((train.n_items, 4)))), steps=1)


def refused_values(cls: type) -> Iterator[tuple[str, Any]]:
    """For each setting, the values next to its range and of the wrong type."""
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        hint = _without_none(hints[field.name])
        plain, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        not_finite = [float(text) for text in ("nan", "inf", "-inf")]
        values = {int: ["many", 1.5], float: ["much", *not_finite], bool: ["perhaps"]}.get(plain, [])
        if get_origin(plain) is Literal:
            values = ["no-such-value"]
        for limits in (note for note in notes if isinstance(note, Limits)):
            outside = (_below(limits.low), limits.above, _above(limits.high), limits.below)
            values = values + [value for value in outside if value is not None]
        yield from ((field.name, value) for value in values)


def _without_none(hint: Any) -> Any:
    """X out of `X | None`."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return next(kind for kind in get_args(hint) if kind is not NoneType)


def _below(limit: float | None) -> float | None:
    return None if limit is None else limit - max(1, abs(limit))


def _above(limit: float | None) -> float | None:
    return None if limit is None else limit + max(1, abs(limit))


def skip_without_its_package(solver: Solver) -> None:
    """Skip a test of a solver of another package that is not installed."""
    if remedy := missing(solver):
        pytest.skip(f"a package is missing: {remedy}")


@pytest.mark.parametrize("name", SOLVERS.entries)
def test_steps_are_silent_at_ordinary_settings(name):
    train = small()
    solver = solver_of(name, {})
    skip_without_its_package(solver)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("error")
        for step in islice(solver.steps(offer(solver, train), stream(0)), STEPS):
            assert step.objective is None or isfinite(step.objective())
