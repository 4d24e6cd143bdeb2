"""Writes the stub of each kernel, rankbench/kernels/ROOM/NAME.pyi, from its signatures in pyx/ROOM/NAME.pyx.

    python .ci/write_stubs.py            write all stubs, and remove those without a kernel
    python .ci/write_stubs.py --check    write nothing; exit code 1 if a stub is missing, too many or out of date

It needs Cython, which reads the signatures; nothing is compiled. A memory view becomes the array type of its
elements, so that mypy finds 32-bit ids where 64-bit ones are asked for.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from Cython.Compiler import ExprNodes, ModuleNode, Nodes
from Cython.Compiler.TreeFragment import StringParseContext, parse_from_strings

ROOT = Path(__file__).parent.parent
SOURCES, STUBS = ROOT / "pyx", ROOT / "rankbench" / "kernels"
WIDTH = 120

ARRAYS = {"double": "Floats", "float": "Float32s", "int64_t": "Int64s", "int32_t": "Int32s", "int8_t": "Int8s"}
SCALARS = dict.fromkeys(("double", "float"), "float") | {"bint": "bool"}
SCALARS |= dict.fromkeys(("int", "Py_ssize_t", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"), "int")
OBJECTS = {"rng": "np.random.Generator"}  # parameters without a type, by their names
OBJECTS |= dict.fromkeys(("numbers", "text_places"), "list[Int64s]")
FROM_CONTRACT = ("Flags", "Float32s", "Floats", "Int8s", "Int32s", "Int64s", "Records")


@dataclass
class Stub:
    """What is written about one kernel: its docstring, and its declarations with the names that they use."""

    doc: str  # the first line of the kernel's own
    own: set[str] = field(default_factory=set)  # names of classes declared here
    imported: dict[str, str] = field(default_factory=dict)  # name: module, of what is cimported from other kernels
    blocks: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The stub as it is written."""
        body = "\n".join(self.blocks).replace("\n\n\n", "\n\n").strip("\n")
        parts = [f'"""{self.doc}"""', *self._imports(body)]
        return "\n\n".join(part for part in (*parts, body) if part) + "\n"

    def _imports(self, body: str) -> list[str]:
        words = set("".join(c if c.isalnum() or c == "_" else " " for c in body).split())
        standard = ["from enum import IntEnum"] if "IntEnum" in words else []
        numpy = ["import numpy as np"] if "np" in words else []
        contract = [name for name in FROM_CONTRACT if name in words]
        local = [f"from rankbench.core.contract import {', '.join(sorted(contract, key=_isort))}"] if contract else []
        modules: dict[str, list[str]] = {}
        for name, module in self.imported.items():
            if name in words and name not in self.own:
                modules.setdefault(module, []).append(name)
        local += [f"from {module} import {', '.join(sorted(names, key=_isort))}" for module, names in modules.items()]
        return ["\n".join(lines) for lines in (standard, numpy, sorted(local)) if lines]


def _isort(name: str) -> tuple[bool, str]:
    """Constants before classes, and Int8s before Int32s, as ruff sorts names."""
    return not name.isupper(), re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)


def main() -> int:
    """Write the stubs, or compare them; the exit code."""
    wanted = {_stub_path(path): stub_of(path).text() for path in sorted(SOURCES.rglob("*.pyx"))}
    if "--check" in sys.argv[1:]:
        return _compare(wanted)
    for path, text in wanted.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in set(STUBS.rglob("*.pyi")) - set(wanted):
        path.unlink()
    return 0


def _stub_path(source: Path) -> Path:
    return STUBS / source.relative_to(SOURCES).with_suffix(".pyi")


def _compare(wanted: dict[Path, str]) -> int:
    found = {path: path.read_text() for path in STUBS.rglob("*.pyi")}
    wrong = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    for path in wrong:
        print(f"{path.relative_to(ROOT)} does not match its kernel: run python .ci/write_stubs.py")
    return 1 if wrong else 0


def stub_of(path: Path) -> Stub:
    """The stub of one kernel file and the declarations that go with it."""
    tree = _parsed(path)
    stub = Stub(str(tree.doc).strip().partition("\n")[0])
    declarations = path.with_suffix(".pxd")
    nodes = [*(_nodes(_parsed(declarations).body) if declarations.exists() else ()), *_nodes(tree.body)]
    for node in nodes:
        if isinstance(node, Nodes.FromCImportStatNode) and node.module_name.startswith("rankbench."):
            stub.imported |= {name: str(node.module_name) for _, name, _ in node.imported_names}
        elif isinstance(node, Nodes.CClassDefNode):
            stub.own.add(str(node.class_name))
    for node in nodes:
        stub.blocks += _declared(node)
    return stub


def _parsed(path: Path) -> ModuleNode.ModuleNode:
    context = StringParseContext(path.stem)
    context.set_language_level(3)
    return parse_from_strings(path.stem, path.read_text(), context=context)


def _nodes(body: Nodes.Node) -> Iterator[Nodes.Node]:
    """The statements of a module or class."""
    for node in body.stats if isinstance(body, Nodes.StatListNode) else (body,):
        if isinstance(node, Nodes.StatListNode):
            yield from _nodes(node)
        else:
            yield node


def _declared(node: Nodes.Node) -> list[str]:
    """The declaration in Python's words; nothing for what Python does not see."""
    if isinstance(node, Nodes.CEnumDefNode) and node.create_wrapper:
        return _enum(node)
    if isinstance(node, Nodes.CClassDefNode) and node.body is not None:
        methods = [child for child in _nodes(node.body) if isinstance(child, Nodes.DefNode)]
        if not methods:
            return []  # the declaration of a class whose methods stand in the .pyx
        return ["\n".join(["", f"class {node.class_name}:", *(_function(method, "    ") for method in methods), ""])]
    if isinstance(node, Nodes.DefNode) and not node.name.startswith("_"):
        return [_function(node, "")]
    return _annotated(getattr(node, "lhs", getattr(node, "expr", None)))


def _annotated(target: ExprNodes.ExprNode | None) -> list[str]:
    """A constant of the module, which Python sees if its type is written beside it."""
    if isinstance(target, ExprNodes.NameNode) and target.annotation:
        return [f"{target.name}: {target.annotation.string.value}"]
    return []


def _enum(node: Nodes.CEnumDefNode) -> list[str]:
    """The members of an enumeration, numbered from 0 where no value is given."""
    members: list[tuple[str, int]] = []
    for item in node.items:
        value = int(item.value.value) if item.value is not None else (members[-1][1] + 1 if members else 0)
        members.append((str(item.name), value))
    if node.name is None:
        return ["\n".join(f"{name}: int" for name, _ in members)]
    return ["\n".join(["", f"class {node.name}(IntEnum):", *(f"    {name} = {value}" for name, value in members), ""])]


def _function(node: Nodes.DefNode, indent: str) -> str:
    """The signature of a function; that of `__init__` for what Cython calls `__cinit__`."""
    name = "__init__" if node.name == "__cinit__" else str(node.name)
    parts, starred = [], False
    for argument in node.args:
        if argument.kw_only and not starred:
            parts, starred = [*parts, "*"], True
        parts.append(_parameter(argument))
    annotation = node.return_type_annotation
    returned = annotation.string.value if annotation is not None else "None"
    line = f"{indent}def {name}({', '.join(parts)}) -> {returned}: ..."
    if len(line) <= WIDTH:
        return line
    inner = indent + "    "
    if len(f"{inner}{', '.join(parts)}") <= WIDTH:
        return f"{indent}def {name}(\n{inner}{', '.join(parts)}\n{indent}) -> {returned}: ..."
    rows = "".join(f"{inner}{part},\n" for part in parts)
    return f"{indent}def {name}(\n{rows}{indent}) -> {returned}: ..."


def _parameter(argument: Nodes.CArgDeclNode) -> str:
    base, declarator = argument.base_type, argument.declarator
    name = str(declarator.name) or str(base.name)  # `self` and `rng` are parsed as types without a name
    if name == "self":
        return name
    annotation = argument.annotation
    kind = OBJECTS.get(name) or (_kind(base) if annotation is None else annotation.string.value.strip("\"'"))
    if argument.default is None:
        return f"{name}: {kind}"
    if isinstance(argument.default, ExprNodes.NoneNode):
        return f"{name}: {kind} | None = None"
    if isinstance(argument.default, ExprNodes.NameNode):
        return f"{name}: {kind} = ..."  # a name of the kernel's own, such as a code's
    return f"{name}: {kind} = {argument.default.value}"


def _kind(base: Nodes.CBaseTypeNode) -> str:
    """The type of a parameter in Python's words."""
    if isinstance(base, Nodes.MemoryViewSliceTypeNode):
        element = base.base_type_node
        element = getattr(element, "base_type", element)
        return ARRAYS.get(str(element.name), "Records")
    return SCALARS.get(str(base.name), str(base.name))


if __name__ == "__main__":
    sys.exit(main())
