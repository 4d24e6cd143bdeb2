"""Rules for the code: layered imports without cycles, docstrings, short functions, names parsed in one place."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankbench
from rankbench.models import MODELS
from rankbench.solvers import SOLVERS

PACKAGE = Path(rankbench.__file__).parent
ROOT = PACKAGE.parent
FLOORS = [  # from the ground up; a floor may import what stands before it
    {"core"},
    {"arrays"},
    {"names"},
    {"kernels"},
    {"features", "statistics"},
    {"models"},
    {"data"},
    {"distributed"},
    {"metrics"},
    {"methods"},
    {"solvers"},
    {"explanations", "new_users"},
    {"fitted"},
    {"experiments"},
    {"records"},
    {"planning"},
    {"execution"},
    {"checks"},
    {"sklearn"},
    {"report"},
    {"verification"},
    {"judging"},
    {"leaderboards"},
    {"own_data"},
    {"api"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, floor in enumerate(FLOORS) for name in floor}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@cache
def parsed(path: Path) -> ast.Module:
    """What a file says; every test reads the same."""
    return ast.parse(path.read_text())


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every module of ours that a file imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankbench"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in KNOWN else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("rankbench")}
    return found


def trees(*folders: str) -> dict[str, ast.Module]:
    """The modules of these parts of the package by their places in it; of the whole package unless said."""
    found = {path.relative_to(PACKAGE).as_posix(): path for path in MODULES}
    return {name: parsed(path) for name, path in found.items() if not folders or name.partition("/")[0] in folders}


def calls_of(name: str) -> list[str]:
    """The modules of the package that call something of this name, each as often as it does."""
    return [
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    ]


def looked_up(tree: ast.AST) -> list[str]:
    """Where something is looked up by a name that was agreed upon elsewhere, as one does in a bare dictionary."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            by_text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            by_name = isinstance(node.value, ast.Attribute) and isinstance(node.slice, ast.Name | ast.Attribute)
            found += [node.value] if by_text or by_name else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            by_text = bool(node.args) and isinstance(node.args[0], ast.Constant)
            found += [node.func.value] if by_text else []
    return [ast.unparse(value) for value in found]


def loose(tree: ast.AST) -> list[str]:
    """The functions that take or give dictionaries of just anything."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            hints = [node.returns, *(argument.annotation for argument in arguments)]
            if any(hint and "dict[str, Any]" in ast.unparse(hint) for hint in hints):
                found.append(node.name)
    return found


KNOWN = {module_name(path) for path in MODULES}


def floor(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.slow
def test_no_import_points_up():
    for path in MODULES:
        own = floor(module_name(path))
        for other in filter(None, map(floor, imported(path))):
            assert LEVEL[other] <= LEVEL[own], f"{module_name(path)} imports {other}, which stands above it"


def test_no_solver_imports_another():
    for path in (PACKAGE / "solvers").rglob("*.py"):
        assert not [name for name in imported(path) if name.startswith("rankbench.solvers")], path.name


@pytest.mark.slow
def test_records_import_nothing_that_forks_or_trains():
    program = (
        "import importlib, pkgutil, sys\n"
        "before = set(sys.modules)  # coverage has imported much by now, if it runs\n"
        "import rankbench.records as floor\n"
        "for one in pkgutil.iter_modules(floor.__path__): importlib.import_module(f'rankbench.records.{one.name}')\n"
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {".".join(name.split(".")[:2]) for name in done.stdout.split()}
    assert "rankbench.records" in loaded
    above = {f"rankbench.{name}" for name, level in LEVEL.items() if level > LEVEL["records"]}
    trains = {"rankbench.distributed", "rankbench.methods", "rankbench.fitted"}
    assert loaded.isdisjoint(above | trains | {"multiprocessing"})
    assert not [name for name in done.stdout.split() if name.startswith("rankbench.solvers.")]


@pytest.mark.slow
def test_imports_make_no_circle():
    graph = {module_name(path): imported(path) - {module_name(path)} for path in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def length(function: ast.FunctionDef) -> int:
    """The lines of a function, without those of its docstring."""
    first = function.body[0]
    told = ast.get_docstring(function) is not None
    return function.end_lineno - function.lineno - (first.end_lineno - first.lineno if told else 0)


@pytest.mark.slow
def test_every_module_says_what_it_is_and_every_function_fits_on_a_screen():
    for path in MODULES:
        tree = parsed(path)
        assert ast.get_docstring(tree), f"{path}: no module docstring"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert length(node) < 50, f"{path}: {node.name}"


def public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The public functions and classes of a module or class; those inside a function are nobody's interface."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from public(node.body) if isinstance(node, ast.ClassDef) else ()


def test_every_public_function_and_class_has_a_docstring():
    for path in MODULES:
        for node in public(parsed(path).body):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"


OWN_DICTIONARIES = {"plots.py": {"layout", "trace"}}  # made where they are used


@pytest.mark.parametrize("module", trees("report"))
def test_the_report_reads_records_and_no_dictionaries_of_somebody_elses(module):
    allowed = OWN_DICTIONARIES.get(module.rpartition("/")[2], set())
    assert set(looked_up(trees("report")[module])) <= allowed


@pytest.mark.parametrize(
    "text",
    ['entry["shown"]', "result.metrics[name]", 'study.experiment["tune"]', 'entry.get("shown")', "one.made[two.name]"],
)
def test_a_look_up_by_a_name_is_seen(text):
    assert looked_up(ast.parse(text))


@pytest.mark.parametrize("text", ["result.curve[-1]", "panel.lines[0]", "of[column - 1]", "values[name]", "one.x[1:]"])
def test_an_index_is_no_look_up_by_a_name(text):
    assert not looked_up(ast.parse(text))


LOOSE = {"codec.py", "store.py", "plots.py"}  # the borders: to files, and to plotly


def test_no_dictionary_of_just_anything_goes_from_function_to_function():
    for module, tree in trees("records", "planning", "execution", "checks", "report", "cli").items():
        assert module.rpartition("/")[2] in LOOSE or not loose(tree), module


@pytest.mark.slow
def test_a_store_has_one_maker_and_so_has_a_folder_of_results():
    assert calls_of("Store") == ["records/store.py"]
    assert sorted(calls_of("ResultsFolder")) == [
        "api/comparing.py",
        "api/outcomes.py",
        "api/session.py",
        "cli/opening.py",
        "report/study.py",
        "report/writing.py",  # in a process of its own
        "verification/verify.py",
    ]


READERS = {  # who takes a text apart that names something: where the text comes from a person, and nowhere else
    "names/__init__.py",
    "names/registry.py",
    "metrics/records.py",
    "experiments/spaces.py",
    "planning/plan.py",  # of what was selected
    "cli/data_verbs.py",
    "cli/describe.py",
    "judging/sources.py",
}


@pytest.mark.slow
def test_names_are_taken_apart_at_the_door_and_nowhere_else():
    readers = set()
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankbench.names"):
                readers |= {module for alias in node.names if alias.name == "parse"}
    assert readers == READERS
    of_patterns = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "Pattern.read"
    }
    assert of_patterns == {"experiments/costs.py"}


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


def unexplained(text: str) -> list[str]:
    """The lines that are left out of the coverage without a reason of several words behind the mark."""
    marked = [line for line in text.splitlines() if re.search("pragma:? *no *(cover|branch)", line, re.IGNORECASE)]
    return [line.strip() for line in marked if not re.search(r"# pragma: no cover: \w+( \S+){2,}$", line)]


def test_every_line_that_is_left_out_of_the_coverage_says_why():
    for path in [*MODULES, PACKAGE / "__init__.py"]:
        assert unexplained(path.read_text()) == [], path.name


@pytest.mark.parametrize("mark", ["# pragma: no cover", "# pragma: no cover: why", "# PRAGMA:no cover for a reason"])
def test_a_line_that_is_left_out_without_a_reason_is_seen(mark):
    assert unexplained(f"one = 1\ntwo = 2  {mark}\n") == [f"two = 2  {mark}"]
    assert not unexplained("two = 2  # pragma: no cover: only on another system\n")


def test_coverage_lets_no_other_line_pass():
    text = (ROOT / "pyproject.toml").read_text()
    report = tomllib.loads(text)["tool"]["coverage"]["report"]
    assert report["fail_under"] == 100
    assert not {"exclude_lines", "omit", "partial_branches"} & (
        set(report) | set(tomllib.loads(text)["tool"]["coverage"]["run"])
    )
    listed = text.partition("exclude_also = [\n")[2].partition("\n]")[0].splitlines()
    assert len(listed) == len(report["exclude_also"])
    assert [line for line in listed if not re.search(r'",  # \w+( \S+){2,}$', line)] == []


def test_records_cannot_be_changed():
    found = {
        node.name
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if "dataclass" in ast.unparse(decorator) and "frozen=True" not in ast.unparse(decorator)
    }
    assert found == set()


def test_everything_public_is_listed_for_completion():
    assert dir(rankbench) == sorted([*rankbench.__all__, "__version__"])
