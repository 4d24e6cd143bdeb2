"""Reading results of the older file format 2."""

from collections.abc import Mapping
from typing import Any

from rankbench.records.cells import Cell, Measure
from rankbench.records.codec import Unreadable, revived
from rankbench.records.results import Result

_AS_THEY_ARE = ("status", "reason", "unscored", "wall", "peak_mb", "contended", "finished", "trace", "stopped")


def result_of_format_2(content: Mapping[str, Any], cell: Cell) -> Result:
    """The result of a cell from the content of its file in format 2."""
    try:
        known = {name: content.get(name) for name in _AS_THEY_ARE}
        table = {
            **known,
            "curve": [_point(point, cell.measures) for point in content["curve"]],
            "counted": [],
            "machine": _machine(content["machine"]),
            "functions": [_function(function) for function in content.get("basis") or []],
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"not a result of format 2: {error!r}") from None
    found: Result = revived(Result, table, cell=cell)
    return found


def _point(point: Mapping[str, Any], measures: tuple[Measure, ...]) -> dict[str, Any]:
    values = [point["metrics"][measure.label] for measure in measures]
    more = {name: point[name] for name in ("objective", "gap", "bound") if name in point}
    plain_values = ["nan" if value is None else value for value in values]
    return {"step": point["step"], "seconds": point["seconds"], "values": plain_values, **more}


def _machine(machine: Mapping[str, Any]) -> dict[str, Any]:
    return {**machine, "packages": [list(pair) for pair in machine["packages"].items()]}


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    """A basic ranking function, with (feature, weight) pairs turned into dictionaries."""
    return {
        side: [{"feature": feature, "weight": weight} for feature, weight in function[side]]
        for side in ("positive", "negative")
    }
