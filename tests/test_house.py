"""The house holds: imports point down, nothing goes in circles, functions fit on a screen."""

import ast
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankbench
from rankbench.models import MODELS
from rankbench.solvers import SOLVERS

PACKAGE = Path(rankbench.__file__).parent
ROOT = PACKAGE.parent
FLOORS = [  # from the ground up; a floor may import what stands before it
    {"errors", "contract", "streams", "arrays", "specs"},
    {"kernels"},
    {"isotonic", "item_kernels"},
    {"models"},
    {"data"},
    {"metrics"},
    {"methods"},
    {"solvers"},
    {"experiments"},
    {"harness"},
    {"sklearn"},
    {"report"},
    {"terminal", "describe"},
    {"session"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, floor in enumerate(FLOORS) for name in floor}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every module of ours that a file imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankbench"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in KNOWN else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("rankbench")}
    return found


KNOWN = {module_name(path) for path in MODULES}


def floor(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_import_points_up(path):
    own = floor(module_name(path))
    for other in filter(None, map(floor, imported(path))):
        assert LEVEL[other] <= LEVEL[own], f"{own} imports {other}, which stands above it"


def test_no_solver_imports_another():
    for path in (PACKAGE / "solvers").glob("*.py"):
        assert not [name for name in imported(path) if name.startswith("rankbench.solvers")], path.name


def test_imports_make_no_circle():
    graph = {module_name(path): imported(path) - {module_name(path)} for path in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_module_says_what_it_is_and_every_function_fits_on_a_screen(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "no module docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 50, node.name


def test_every_public_function_and_class_has_a_docstring():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                inner = isinstance(node, ast.FunctionDef) and node.name in {"tell", "block", "wanted", "times", "entry"}
                assert ast.get_docstring(node) or inner or node.name == "objective", f"{path.name}: {node.name}"


def test_the_version_is_said_once_more_and_alike():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == rankbench.__version__


def test_everything_public_can_be_had():
    for name in rankbench.__all__:
        assert getattr(rankbench, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        rankbench.nonsense  # noqa: B018


def test_every_solver_and_model_can_be_asked_of_the_package():
    solvers = {SOLVERS.find(name).__name__ for name in SOLVERS.entries}
    assert solvers | set(MODELS) <= set(rankbench.__all__)
