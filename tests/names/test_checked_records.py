"""Every record of settings checks its fields: of solvers, data sets, splits, and the parts of an experiment."""

from dataclasses import fields
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest

from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.experiments import Budget, Curve, Experiment, Figure, Published
from rankbench.experiments.naming import Names
from rankbench.experiments.spaces import Range, Tune
from rankbench.names.checking import Limits, hints_of
from rankbench.names.registry import class_at
from rankbench.records.cells import Selection
from rankbench.solvers import SOLVERS

REQUIRED = {
    Curve: {"name": "a", "x": (1.0,), "y": (1.0,)},
    Published: {"solver": "sgd", "metric": "ndcg@5", "value": 0.5},
    Experiment: {
        "name": "a", "title": "a", "paper": "a", "about": "a", "data": ("btl",), "splits": ("entries",),
        "solvers": ("sgd",), "metrics": ("kendall",),
    },
    Tune: {"space": {"sgd": {"lam": (1.0, 2.0)}}},
    Range: {"low": 1.0, "high": 2.0},
}  # fmt: skip
PARTS = (Budget, Curve, Experiment, Figure, Published, Names, Tune, Range, Selection)
NAMED = {
    (registry.kind, name): class_at(home)
    for registry in (SOLVERS, DATASETS, SPLITS)
    for name, home in registry.entries.items()
    if not name.endswith(":")
}


def wrong(hint):
    """A value that this type or its limits do not allow; None if the checks allow anything."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        limits = next((note for note in notes if isinstance(note, Limits)), None)
        if limits is None:
            return wrong(inner)
        return float("nan") if inner is float else int(limits.low) - 1
    if get_origin(hint) is Literal:
        return "no such value"
    if get_origin(hint) is Union or hint.__class__.__name__ == "UnionType":
        return wrong(next(arg for arg in get_args(hint) if arg is not type(None)))
    return {int: "many", float: "much", bool: "perhaps"}.get(hint)


def cases(classes):
    return [
        pytest.param(cls, f.name, wrong(hints_of(cls)[f.name]), id=f"{cls.__name__}.{f.name}")
        for cls in classes
        for f in fields(cls)
        if f.init and wrong(hints_of(cls)[f.name]) is not None
    ]


@pytest.mark.parametrize(("cls", "name", "value"), cases(dict.fromkeys((*NAMED.values(), *PARTS))))
def test_a_field_of_another_type_or_out_of_its_range_is_refused_by_name(cls, name, value):
    with pytest.raises(UserError, match=name):
        cls(**{**REQUIRED.get(cls, {}), name: value})


def test_most_fields_are_among_these():
    assert len(cases(NAMED.values())) > 100 and len(cases(PARTS)) > 15
