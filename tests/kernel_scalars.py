"""Calls of every kernel with another integer: each one of its signature in turn, and small, negative and huge numbers.

`python tests/kernel_scalars.py ROUNDS SAME LOG` first runs the uses of the package so many times, on small random data,
and keeps up to SAME calls of each kernel. Then a process for each kernel, forked so that nothing it does reaches the
others, makes them again with one integer changed. It is a finding if a signal ends the process, if it does not end in
time, and if it takes a code that an enumeration does not have. Which parameters are integers, and which are codes,
is read from the stubs: a new kernel needs no line here.
"""

import ast
import importlib
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from kernel_fuzzing import INTEGER, STUBS, Call, Change, Entry, Repeater, calls_of_uses, entries, leaves, write
from threadpoolctl import threadpool_limits

SECONDS = 60  # for a call with all of its changes
MEMORY = 4 << 30  # bytes of a process: arrays of 2^31 numbers are refused, and not filled
SMALL = (0, -1, 1)
HUGE = (2**31 - 1, 2**31, 2**63 - 1, -(2**31), -(2**63))
WORK = {"cg", "draws", "iterations", "passes", "rounds", "steps"}  # so much is asked for: not too much of it, then
REFUSALS = (ValueError, OverflowError, MemoryError)


# what the stubs say


@cache
def parameters() -> Mapping[tuple[str, str], type[int]]:
    """The integers of each kernel: their type, `int` or an enumeration, by the names of the entry and the parameter."""
    found = {}
    for entry in entries():
        path = STUBS / Path(*entry.module.split(".")[2:]).with_suffix(".pyi")
        tree = ast.parse(path.read_text())
        (node,) = (part for part in tree.body if getattr(part, "name", None) == entry.name)
        known = {"int": int} | dict(_enumerations(entry.module, tree))
        for function in (part for part in ast.walk(node) if isinstance(part, ast.FunctionDef)):
            for argument in function.args.kwonlyargs:
                if isinstance(argument.annotation, ast.Name) and argument.annotation.id in known:
                    found[entry.module + "." + entry.name, argument.arg] = known[argument.annotation.id]
    return found


def _enumerations(module: str, tree: ast.Module) -> Iterator[tuple[str, type[int]]]:
    """The enumerations that a stub defines or imports."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", None) == "IntEnum" for base in node.bases):
            yield node.name, getattr(importlib.import_module(module), node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankbench.kernels"):
            for name in (alias.name for alias in node.names):
                kind = getattr(importlib.import_module(node.module or ""), name)
                if isinstance(kind, type) and issubclass(kind, IntEnum):
                    yield name, kind


def kind_of(entry: Entry, name: str) -> type[int] | None:
    """The type of a parameter that is an integer."""
    return parameters().get((f"{entry.module}.{entry.name}", name))


# recording


def recorded(rounds: int, same: int) -> dict[Entry, list[Call]]:
    """Up to `same` calls of each kernel with an integer among its arguments, in so many rounds through all uses."""
    kept: dict[Entry, list[Call]] = {}
    for call in calls_of_uses(rounds):
        of_entry = kept.setdefault(call.entry, [])
        if len(of_entry) < same and any(changes_of(call)):
            of_entry.append(call)
    return {entry: calls for entry, calls in kept.items() if calls}


def changes_of(call: Call) -> Iterator[tuple[Change, type[int]]]:
    """Every integer of a call and of the objects that it takes, with each number that is tried, and its type."""
    for owner, path in _owned(call):
        kind = kind_of(owner, path[-1])
        if kind is not None:
            codes = range(len(kind) + 2) if issubclass(kind, IntEnum) else ()
            for number in dict.fromkeys([*SMALL, *codes, *(() if path[-1] in WORK else HUGE)]):
                yield (path, f"{INTEGER}{number}"), kind


def _owned(call: Call) -> Iterator[tuple[Entry, tuple[str, ...]]]:
    """The path to each argument of a call and of the objects in it, with the entry that takes it."""
    by_path: dict[tuple[str, ...], Entry] = {(): call.entry}
    for path, _, value in leaves(call):
        if isinstance(value, Call):
            by_path[path] = value.entry
        yield by_path[path[:-1]], path


# trying


def findings(call: Call, repeater: Repeater, log: TextIO) -> Iterator[str]:
    """Make a call again with each of its integers changed; yields what is wrong."""
    for change, kind in changes_of(call):
        what = f"{call} with {'.'.join(change[0])}: {change[1]}"
        write(log, what)
        number = int(change[1].removeprefix(INTEGER))
        known = not issubclass(kind, IntEnum) or number in set(kind)
        try:
            repeater.changed(call, change)
        except REFUSALS as error:
            if kind is not int and known:
                yield f"{what} raised {error!r}, though there is such a code"
            elif type(error) is ValueError and str(number) not in str(error):
                yield f"{what} raised {error!r}, which does not tell the value"
        except Exception as error:
            yield f"{what} raised {error!r}"
        else:
            if not known:
                yield f"{what} was taken, though there is no such code"


def forked(calls: Sequence[Call], originals: Mapping[Entry, Any], log: Path) -> list[str]:
    """What a process of its own finds wrong with calls of one kernel; how it ended, unless it came to its end."""
    child = os.fork()
    if child == 0:
        _try_all(calls, originals, log)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = log.read_text().splitlines()
    if code == -signal.SIGALRM:
        return [f"{lines[-1]} did not end within {SECONDS} s"]
    wrong = [line.removeprefix("WRONG ") for line in lines if line.startswith("WRONG ")]
    return wrong if code == 0 else [*wrong, f"{lines[-1]} ended its process with {code}"]


def _try_all(calls: Sequence[Call], originals: Mapping[Entry, Any], log: Path) -> None:
    """Try all changes of these calls, and end the process."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its own memory is far more; it has a limit for arrays
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with log.open("w") as lines, np.errstate(all="ignore"), threadpool_limits(limits=1, user_api="blas"):
        repeater = Repeater(originals, np.random.default_rng(0))
        for call in calls:
            signal.alarm(SECONDS)  # which ends the process, and no loop in C can keep it from that
            for wrong in findings(call, repeater, lines):
                write(lines, f"WRONG {wrong}")
    os._exit(0)


def main(rounds: int, same: int, path: str) -> int:
    """Record calls in a process of their own, whose threads are not forked, and try each kernel's; 1 for a finding."""
    log = Path(path)
    subprocess.run([sys.executable, __file__, "record", str(rounds), str(same), path], check=True)
    calls: dict[Entry, list[Call]] = pickle.loads(log.read_bytes())
    with_integers = {f"{entry.module}.{entry.name}" for entry in entries()} & {owner for owner, _ in parameters()}
    missing = with_integers - {f"{entry.module}.{entry.name}" for entry in calls}
    wrong = [f"{name} was never called" for name in sorted(missing)]
    originals = {entry: getattr(importlib.import_module(entry.module), entry.name) for entry in entries()}
    for some in calls.values():
        wrong += forked(some, originals, log)
    tried = sum(1 for some in calls.values() for call in some for _ in changes_of(call))
    print(*wrong, f"{tried} calls of {len(calls)} kernels", sep="\n")
    return min(1, len(wrong))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        from kernel_scalars import recorded as recorded_here  # whose classes are those that the reader knows

        Path(sys.argv[4]).write_bytes(pickle.dumps(recorded_here(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
