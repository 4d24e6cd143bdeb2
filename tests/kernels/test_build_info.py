"""The digest of the kernels depends on everything that decides their results, and on nothing else."""

import importlib.util
import os
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


@pytest.mark.one_in(5)
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


def test_only_the_kernel_that_tells_the_digest_is_built_again_when_another_changes(setup_py, kernels, monkeypatch):
    monkeypatch.chdir(shutil.move(kernels, kernels.parent / "pyx").parent)
    found = {extension.name: set(extension.depends) for extension in setup_py.extensions(setup_py.recipe())}
    assert found.pop("rankbench.kernels.build_info") == {"build/recipe.json", "build/digest"}
    assert all(depends == {"build/recipe.json"} for depends in found.values())


def test_a_file_beside_the_kernels_is_new_only_if_its_text_is(setup_py, here):
    path = Path(setup_py.written("digest", "one"))
    os.utime(path, (1e9, 1e9))
    assert setup_py.written("digest", "one") == "build/digest" and path.stat().st_mtime == 1e9
    setup_py.written("digest", "other")
    assert path.read_text() == "other" and path.stat().st_mtime > 1e9


@pytest.mark.parametrize(("built", "made"), [(2e9, ["copied"]), (1e9, ["compiled"]), (None, ["compiled"])])
def test_a_kernel_in_the_tree_is_taken_if_it_is_newer_than_its_c_code(setup_py, here, monkeypatch, built, made):
    ours = pytest.importorskip("setuptools.command.build_ext", reason="only what builds the kernels needs it").build_ext
    from setuptools import Distribution, Extension

    done = []
    monkeypatch.setattr(ours, "build_extension", lambda self, ext: done.append("compiled"))
    monkeypatch.setattr(setup_py.shutil, "copy2", lambda *_: done.append("copied"))
    command = setup_py.builder()(Distribution())
    command.ensure_finalized()
    for name, time in {"a.c": 1.5e9, "recipe.json": 1.5e9, command.get_ext_filename("a"): built}.items():
        if time is not None:
            Path(name).touch()
            os.utime(name, (time, time))
    command.build_extension(Extension("a", ["a.c"], depends=["recipe.json"]))
    assert done == made


def test_what_kernels_share_is_built_again_where_they_are_and_where_the_check_of_arrays_changes(setup_py):
    kernel = SimpleNamespace(name="sgd", sources=["sgd.c"], depends=["build/recipe.json"], extra_compile_args=["-O1"])
    found = setup_py.runtime(kernel)
    assert set(found.depends) == {"build/recipe.json", "pyx/shared/aligned.h"}
    assert found.extra_compile_args == ["-O1", "-include", "pyx/shared/aligned.h"] and kernel.name == "sgd"


def test_without_a_compiler_its_version_is_empty(setup_py, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert setup_py.compiler_version() == ""


def test_of_what_a_kernels_c_code_is_made_follows_the_files_that_it_includes(setup_py, kernels, monkeypatch):
    monkeypatch.chdir(shutil.move(kernels, kernels.parent / "pyx").parent)
    source = Path("pyx/solvers/sgd.pyx")
    names = {path.relative_to("pyx").as_posix() for path in setup_py.included(source)}
    assert {"solvers/sgd.pyx", "methods/pairwise.pxd", "shared/draws.pxd"} < names  # the last one by another of them
    assert "solvers/altsvm.pyx" not in names and "methods/pairwise.pyx" not in names
    before = setup_py.made_of(source, RECIPE)
    os.utime(source)
    change_a_byte(Path("pyx/solvers/altsvm.pyx"))
    assert setup_py.made_of(source, RECIPE) == before != setup_py.made_of(source, RECIPE | {"compiler": "cc 2"})
    change_a_byte(Path("pyx/shared/draws.pxd"))
    assert setup_py.made_of(source, RECIPE) != before


def test_every_file_that_a_kernel_includes_is_found(setup_py):
    for name in SOURCES:
        text = (ROOT / "pyx" / name).read_text(encoding="utf-8")
        lines = re.findall(r"^.*\bcimport\b.*$", text, re.M)
        ours = [line for line in lines if "rankbench" in line and not line.startswith("#")]
        assert len(setup_py.CIMPORTED.findall(text)) == len(ours), name
        assert not re.search(r"^include ", text, re.M), name


def test_c_code_that_is_there_and_made_of_these_files_is_not_made_again(setup_py, kernels, monkeypatch):
    build = pytest.importorskip("Cython.Build", reason="only what builds the kernels knows Cython")
    monkeypatch.chdir(shutil.move(kernels, kernels.parent / "pyx").parent)
    asked, code = [], setup_py.c_code(Path("pyx/solvers/sgd.pyx"))

    def cythonize(stale, **options):
        for kernel in stale:
            asked.append(kernel.sources[0])
            setup_py.c_code(Path(kernel.sources[0])).parent.mkdir(parents=True, exist_ok=True)
            setup_py.c_code(Path(kernel.sources[0])).touch()
        return stale

    def made():
        asked.clear()
        found = setup_py.translated([SimpleNamespace(sources=["pyx/solvers/sgd.pyx"])], RECIPE)
        return [kernel.sources for kernel in found]

    monkeypatch.setattr(build, "cythonize", cythonize)
    assert made() == [["pyx/solvers/sgd.pyx"]] == [asked]
    assert made() == [[code.as_posix()]] and asked == []
    code.unlink()
    assert made() == [["pyx/solvers/sgd.pyx"]] == [asked]
    change_a_byte(Path("pyx/shared/draws.pxd"))
    assert made() == [["pyx/solvers/sgd.pyx"]] == [asked]


def test_kernels_are_compiled_on_all_cores_however_the_command_is_made(setup_py):
    setuptools = pytest.importorskip("setuptools")
    command = setup_py.builder()(setuptools.Distribution())
    command.ensure_finalized()
    assert command.parallel == os.cpu_count()
