"""The digest of the kernels depends on everything that decides their results, and on nothing else."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rankbench.kernels import build_info

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SUFFIXES = {".pyx", ".pxd", ".h"}
SOURCES = sorted(
    path.relative_to(ROOT / "pyx").as_posix() for path in (ROOT / "pyx").rglob("*") if path.suffix in SUFFIXES
)
RECIPE = {"directives": {"cdivision": True}, "compile flags": ["-O3"], "macros": [["A", None]], "compiler": "cc 1.0"}


@pytest.fixture(scope="module")
def setup_py():
    """setup.py as a module, which builds nothing."""
    spec = importlib.util.spec_from_file_location("rankbench_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernels(tmp_path):
    """A copy of the kernels' sources in another folder."""
    return Path(shutil.copytree(ROOT / "pyx", tmp_path / "elsewhere"))


def change_a_byte(path):
    """Another last byte: a blank for a line's end."""
    path.write_bytes(path.read_bytes()[:-1] + b" ")


def test_without_compiled_kernels_the_error_says_what_to_do(tmp_path):
    package = ROOT / "rankbench"
    shutil.copytree(package, tmp_path / "rankbench", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    command = [sys.executable, "-c", "import rankbench.data"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: the kernels of rankbench are not compiled for ")
    assert last.endswith(": install rankbench again; in a checkout: python -m pip install -e .")


def test_the_built_kernels_say_their_digest():
    assert re.fullmatch("[0-9a-f]{16}", build_info.digest())


def test_the_digest_is_the_same_in_another_folder(setup_py, kernels):
    assert setup_py.digest(kernels, RECIPE) == setup_py.digest(ROOT / "pyx", RECIPE)


@pytest.mark.parametrize("name", SOURCES)
def test_one_byte_of_any_source_changes_the_digest(setup_py, kernels, name):
    change_a_byte(kernels / name)
    same = setup_py.digest(kernels, RECIPE) == setup_py.digest(ROOT / "pyx", RECIPE)
    assert same == (name == "build_info.pyx")  # which computes nothing


def test_the_names_of_the_sources_are_in_the_digest(setup_py, kernels):
    (kernels / "solvers" / "sgd.pyx").rename(kernels / "solvers" / "sgd2.pyx")
    assert setup_py.digest(kernels, RECIPE) != setup_py.digest(ROOT / "pyx", RECIPE)


@pytest.mark.parametrize(
    "change",
    [
        {"directives": {"cdivision": False}},
        {"compile flags": ["-O2"]},
        {"compile flags": ["-O3", "-march=native"]},
        {"macros": [["B", None]]},
        {"compiler": "cc 1.1"},
    ],
    ids=str,
)
def test_any_part_of_the_recipe_changes_the_digest(setup_py, kernels, change):
    assert setup_py.digest(kernels, RECIPE | change) != setup_py.digest(kernels, RECIPE)


def test_flags_from_the_environment_count_but_no_folder_does(setup_py, monkeypatch):
    pytest.importorskip("Cython", reason="only what builds the kernels knows the recipe")
    monkeypatch.setenv("CFLAGS", "")
    plain = setup_py.recipe()
    assert not [word for word in plain["compile flags"] if "/" in word]
    monkeypatch.setenv("CFLAGS", "-I/home/somebody/include")
    assert setup_py.recipe() == plain
    monkeypatch.setenv("CFLAGS", "-ffast-math")
    assert setup_py.recipe()["environment"] == ["-ffast-math"]


def test_only_kernels_that_are_to_be_debugged_hold_what_a_debugger_reads(setup_py, monkeypatch):
    assert setup_py.symbols() == ["-g0"]
    monkeypatch.setattr(setup_py, "DEBUG", True)
    assert setup_py.symbols() == []


def test_what_kernels_share_is_built_again_where_they_are_and_where_the_check_of_arrays_changes(setup_py):
    kernel = SimpleNamespace(name="sgd", sources=["sgd.c"], depends=["build/recipe.json"], extra_compile_args=["-O1"])
    found = setup_py.runtime(kernel)
    assert set(found.depends) == {"build/recipe.json", "pyx/shared/aligned.h"}
    assert found.extra_compile_args == ["-O1", "-include", "pyx/shared/aligned.h"] and kernel.name == "sgd"


def test_without_a_compiler_its_version_is_empty(setup_py, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert setup_py.compiler_version() == ""
