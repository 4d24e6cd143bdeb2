"""Benchmarks of kernels and of steps as single cases, and a program that runs them: by the clock, or under callgrind.

    python cases.py list                     print the names of all cases
    python cases.py time                     read names from standard input, answer with the CPU seconds of a call
    python cases.py count MARKS NAME...      under callgrind: count the instructions of one call of each case
    python cases.py digest                   print, by name, the digest of each fitted model

It measures the rankbench that its process imports, which PYTHONPATH decides.
"""

import ctypes
import gc
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

LEAST = 0.02  # seconds of calls that a time is taken over
TAKES = 3  # times that are taken for each answer, of which the shortest counts
MODULES = ("kernels", "steps")


@dataclass(frozen=True)
class Case:
    """A benchmark's method with one value of each of its parameters."""

    name: str
    benchmark: type
    method: str
    parameters: tuple[Any, ...]

    def prepared(self) -> Callable[[], object]:
        """The call to measure, on data that is made here."""
        made = self.benchmark()
        made.setup(*self.parameters)
        method = getattr(made, self.method)
        return lambda: method(*self.parameters)


@cache
def cases() -> dict[str, Case]:
    """All cases by their names, such as `SGD.time_pass(10)`."""
    return {case.name: case for module in MODULES for case in _cases_of(import_module(f"benchmarks.{module}"))}


def _cases_of(module: Any) -> Iterator[Case]:
    for name, benchmark in vars(module).items():
        if isinstance(benchmark, type) and benchmark.__module__ == module.__name__:
            for method in (word for word in vars(benchmark) if word.startswith("time_")):
                for parameters in _combinations(getattr(benchmark, "params", ())):
                    listed = ", ".join(map(str, parameters))
                    yield Case(f"{name}.{method}({listed})", benchmark, method, parameters)


def _combinations(parameters: Any) -> list[tuple[Any, ...]]:
    """All combinations of the values of a benchmark's parameters; a single parameter may be given by its values."""
    several = bool(parameters) and all(isinstance(values, (list, tuple)) for values in parameters)
    return list(product(*(parameters if several else [parameters] if parameters else [])))


@cache
def _timed(name: str) -> tuple[Callable[[], object], int]:
    """A prepared call, and how many of them take long enough to be timed."""
    call = cases()[name].prepared()
    start = process_time()
    call()
    once = process_time() - start
    changes_its_data = getattr(cases()[name].benchmark, "number", 0) == 1
    return call, 1 if changes_its_data else max(1, round(LEAST / max(once, 1e-9)))


def time_cases() -> None:
    """Answer each name from standard input with the CPU seconds of one call, or with `nan` if it cannot be run."""
    for line in sys.stdin:
        try:
            call, number = _timed(line.strip())
            print(min(_seconds(call, number) for _ in range(TAKES)), flush=True)
        except Exception:
            print("nan", flush=True)


def _seconds(call: Callable[[], object], number: int) -> float:
    """The CPU seconds of one of so many calls; they do not count what other processes take."""
    start = process_time()
    for _ in range(number):
        call()
    return (process_time() - start) / number


def count_cases(marks: str, names: list[str]) -> None:
    """Let callgrind count the instructions of the second call of each case, and write them under its name."""
    library, calls = ctypes.CDLL(marks), {}
    for name in names:
        try:
            calls[name] = cases()[name].prepared()
            calls[name]()
        except Exception as error:  # the other commit may lack the kernel, or call it otherwise
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            calls.pop(name, None)
    library.count()
    gc.disable()  # a collection would look at all objects of this process, in whichever call it falls
    for name, call in calls.items():
        library.start()
        call()
        library.stop(name.encode())
    gc.enable()


def digests() -> dict[str, str]:
    """By solver, the digest of the model that its benchmark fits; those that this commit lacks are left out."""
    found = {}
    fits = import_module("benchmarks.fits")
    for name in fits.Fit.params:
        benchmark = fits.Fit()
        try:
            benchmark.setup(name)
            found[name] = benchmark.digest()
        except NotImplementedError:
            continue
    return found


def main() -> None:
    """Do what the first word of the command line says."""
    what, *rest = sys.argv[1:]
    if what == "list":
        print("\n".join(cases()))
    elif what == "time":
        time_cases()
    elif what == "count":
        count_cases(rest[0], rest[1:])
    else:
        print(json.dumps(digests()))


if __name__ == "__main__":
    main()
