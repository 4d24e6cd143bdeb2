"""Names for the shell to complete; they are found without importing NumPy, since a shell waits for them.

The tables of names are read from the source of the modules that hold them, and names of plug-ins from their packages.
Where none fits, the shell completes file names.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import rankbench
from rankbench.core.lines import RESULTS

KINDS = ("experiments", "solvers", "datasets", "splits", "metrics")
_PACKAGE = Path(rankbench.__file__).parent


def completer(*sources: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A function that gives a shell the names from these sources that start with what was typed."""

    def complete(incomplete: str) -> list[str]:
        return sorted({name for source in sources for name in source() if name.startswith(incomplete)})

    return complete


def _experiments() -> list[str]:
    return [path.stem for path in (_PACKAGE / "experiments").glob("*.toml")]


def _registered(file: str, group: str) -> list[str]:
    """The names in the tables of the registries that this module makes, and those of plug-ins of this group."""
    calls = _calls(file, "Registry", "_DataSets")
    tables = [arg for call in calls for arg in call.args if isinstance(arg, ast.Dict)]
    keys = [str(key.value) for table in tables for key in table.keys if isinstance(key, ast.Constant)]
    return [*keys, *_plug_ins(group)]


def _metrics() -> list[str]:
    calls = _calls("metrics/records.py", "Metric", "_of_pairs", "_of_ranks", "_of_list", "_of_all_pairs")
    built_in = [call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)]
    return [*map(str, built_in), *_own_metrics()]


def _stored() -> list[str]:
    """The names of experiments with results in the usual folder."""
    plans = (path for part in ("plans", "cells") for path in Path(RESULTS).glob(f"*/{part}") if path.is_dir())
    return [path.parent.name for path in plans]


def _calls(file: str, *names: str) -> Iterator[ast.Call]:
    """The calls of these functions in a module of the package, which is read and not imported."""
    for node in ast.walk(ast.parse((_PACKAGE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def _plug_ins(group: str) -> list[str]:
    from importlib.metadata import entry_points  # noqa: PLC0415  takes time that --help does not need

    return [point.name for point in entry_points(group=group)]


_solvers = partial(_registered, "solvers/__init__.py", "rankbench.solvers")
_data_sets = partial(_registered, "data/__init__.py", "rankbench.datasets")
_splits = partial(_registered, "data/splits/__init__.py", "rankbench.splits")
_own_metrics = partial(_plug_ins, "rankbench.metrics")

experiments = completer(lambda: ["all"], _experiments)
solvers = completer(_solvers)
data_sets = completer(_data_sets)
splits = completer(_splits)
metrics = completer(_metrics)
checkable = completer(_solvers, _own_metrics, _data_sets)  # what `rankbench check` takes by name
listed = completer(lambda: KINDS, _experiments, _solvers, _data_sets, _splits, _metrics)
stored = completer(_stored)
