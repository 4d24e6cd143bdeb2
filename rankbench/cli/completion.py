"""Names for the shell to complete; they are found without importing NumPy, since a shell waits for them.

The tables of names are read from the source of the modules that hold them, and names of plug-ins from their packages.
Where none fits, the shell completes file names.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import rankbench
from rankbench.core.lines import RESULTS

KINDS = ("experiments", "solvers", "datasets", "splits", "metrics")
_PACKAGE = Path(rankbench.__file__).parent
_EXPERIMENTS = _PACKAGE / "experiments"


def experiments(incomplete: str) -> list[str]:
    """The names of experiments that start so, and `all`."""
    return _fitting(["all", *_experiments()], incomplete)


def solvers(incomplete: str) -> list[str]:
    """The names of solvers that start so."""
    return _fitting(_solvers(), incomplete)


def data_sets(incomplete: str) -> list[str]:
    """The names of data sets that start so."""
    return _fitting(_data_sets(), incomplete)


def splits(incomplete: str) -> list[str]:
    """The names of splits that start so."""
    return _fitting(_splits(), incomplete)


def metrics(incomplete: str) -> list[str]:
    """The names of metrics that start so."""
    return _fitting(_metrics(), incomplete)


def checkable(incomplete: str) -> list[str]:
    """The names of solvers, of metrics that are not the package's own, and of data sets that start so."""
    return _fitting([*_solvers(), *_plug_ins("rankbench.metrics"), *_data_sets()], incomplete)


def everything(incomplete: str) -> list[str]:
    """The names of any kind that start so."""
    return _fitting([*_experiments(), *_solvers(), *_data_sets(), *_splits(), *_metrics()], incomplete)


def listed(incomplete: str) -> list[str]:
    """The kinds of names, and names of any kind, that start so."""
    return _fitting([*KINDS, *everything("")], incomplete)


def stored(incomplete: str) -> list[str]:
    """The names of experiments with results in the usual folder that start so."""
    plans = (path for part in ("plans", "cells") for path in Path(RESULTS).glob(f"*/{part}") if path.is_dir())
    return _fitting({path.parent.name for path in plans}, incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _experiments() -> list[str]:
    return [path.stem for path in _EXPERIMENTS.glob("*.toml")]


def _solvers() -> list[str]:
    return [*_keys("solvers/__init__.py"), *_plug_ins("rankbench.solvers")]


def _data_sets() -> list[str]:
    return [*_keys("data/__init__.py"), *_plug_ins("rankbench.datasets")]


def _splits() -> list[str]:
    return [*_keys("data/splits/__init__.py"), *_plug_ins("rankbench.splits")]


def _metrics() -> list[str]:
    calls = _calls("metrics/records.py", "Metric")
    built_in = [call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)]
    return [*map(str, built_in), *_plug_ins("rankbench.metrics")]


def _keys(file: str) -> list[str]:
    """The names in the tables of the registries that this module makes."""
    tables = [arg for call in _calls(file, "Registry") for arg in call.args if isinstance(arg, ast.Dict)]
    return [str(key.value) for table in tables for key in table.keys if isinstance(key, ast.Constant)]


def _calls(file: str, name: str) -> Iterator[ast.Call]:
    """The calls of this name in a module of the package, which is read and not imported."""
    for node in ast.walk(ast.parse((_PACKAGE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _plug_ins(group: str) -> list[str]:
    from importlib.metadata import entry_points  # noqa: PLC0415  takes time that --help does not need

    return [point.name for point in entry_points(group=group)]
