"""The kernels' interfaces: their stubs name what is compiled, and their sources keep to the rules of the house."""

import ast
import inspect
import re
import subprocess
import sys
from enum import IntEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from rankbench import kernels

ROOT = Path(__file__).parents[2]
FOLDER = Path(kernels.__file__).parent
SOURCES = sorted(path for path in (ROOT / "pyx").rglob("*") if path.suffix in {".pyx", ".pxd"})
MODULES = sorted(path.relative_to(ROOT / "pyx").with_suffix("").as_posix() for path in SOURCES if path.suffix == ".pyx")


def compiled(module):
    """The extension module of pyx/ROOM/NAME.pyx."""
    return import_module(f"rankbench.kernels.{module.replace('/', '.')}")


def stub_of(module):
    """The statements of a stub."""
    return ast.parse((FOLDER / f"{module}.pyi").read_text()).body


def parameters(value):
    """The name and kind of each parameter of a function or class."""
    return [(one.name, one.kind) for one in inspect.signature(value).parameters.values()]


def declared(node):
    """The same of a function in a stub, `self` left out."""
    plain = [(argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD) for argument in node.args.args]
    named = [(argument.arg, inspect.Parameter.KEYWORD_ONLY) for argument in node.args.kwonlyargs]
    return [entry for entry in (*plain, *named) if entry[0] != "self"]


def test_every_kernel_has_a_stub_and_every_stub_a_kernel():
    assert sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.pyi")) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_exactly_the_public_functions_and_their_parameters(module):
    own = {name: value for name, value in vars(compiled(module)).items() if not name.startswith("_")}
    functions = {
        name: parameters(value)
        for name, value in own.items()
        if callable(value) and not isinstance(value, type) and value.__module__ == compiled(module).__name__
    }
    assert {node.name: declared(node) for node in stub_of(module) if isinstance(node, ast.FunctionDef)} == functions


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_exactly_the_public_classes_and_constants(module):
    own = {name: value for name, value in vars(compiled(module)).items() if not name.startswith("_")}
    kinds = {name: value for name, value in own.items() if isinstance(value, type)}
    classes = {name for name, value in kinds.items() if value.__module__ == compiled(module).__name__}
    in_stub = {node.name: node for node in stub_of(module) if isinstance(node, ast.ClassDef)}
    assert in_stub.keys() == classes
    for name in classes:
        if issubclass(own[name], IntEnum):
            members = {entry.targets[0].id: ast.literal_eval(entry.value) for entry in in_stub[name].body}
            assert members == {member.name: member.value for member in own[name]}
    constants = {node.target.id for node in stub_of(module) if isinstance(node, ast.AnnAssign)}
    assert constants == {name for name, value in own.items() if name.isupper() and not callable(value)}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("Cython") is None, reason="make lint runs the script, which needs Cython")
def test_the_stubs_are_those_that_the_script_writes():
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "write_stubs.py", "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


# the sources


def functions_of(path):
    """The name, the kind, the parameters and the length of each function of a kernel file."""
    text = path.read_text()
    lines = text.split("\n")
    for match in re.finditer(r"^( *)(def|cdef|cpdef)\b([^\n(]*?)(\w+)\(", text, re.MULTILINE):
        inside = arguments(text, match.end())
        start = text[: match.start()].count("\n")
        end = text[: match.end() + len(inside)].count("\n") + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(match[1] + " ")):
            end += 1
        length = len("\n".join(lines[start:end]).rstrip().split("\n"))
        yield match[4], match[2], split(inside), length


def arguments(text, start):
    """What stands between the bracket that was opened before `start` and the one that closes it."""
    depth, end = 1, start
    while depth:
        depth += (text[end] in "([{") - (text[end] in ")]}")
        end += 1
    return text[start : end - 1]


def split(inside):
    """The parameters, parted at the commas that stand in no bracket."""
    flat = re.sub(r"\[[^\]]*\]|\([^)]*\)", "", inside)
    return [part.strip() for part in flat.split(",") if part.strip() and part.strip() != "self"]


def test_every_kernel_is_called_by_name():
    positional = [
        f"{path.name}: {name}"
        for path in SOURCES
        for name, kind, given, _ in functions_of(path)
        if kind == "def" and name != "__cinit__" and given and given[0] != "*"
    ]
    assert positional == []


def test_few_kernel_functions_have_more_than_seven_parameters_and_all_fit_on_a_screen():
    found = [(path.name, *function) for path in SOURCES for function in functions_of(path)]
    long = [f"{file}: {name} has {length} lines" for file, name, _, _, length in found if length > 60]
    wide = [f"{file}: {name}" for file, name, _, given, _ in found if len([one for one in given if one != "*"]) > 7]
    assert (long, wide) == ([], [])


def test_memory_is_allocated_in_one_place():
    allocating = re.compile(r"\b(malloc|calloc|realloc|free)\(")
    assert [path.name for path in SOURCES if allocating.search(path.read_text())] == []


def test_every_kernel_file_says_what_it_computes():
    for path in SOURCES:
        first = path.read_text().split("\n", 1)[0]
        assert first.startswith('"""' if path.suffix == ".pyx" else "# "), path
        assert len(first.split()) > 4, path
