"""Calls of every kernel with arguments changed at random, each array in front of memory that must not be touched.

`python tests/kernel_fuzzing.py FIRST COUNT LOG` runs the trials numbered FIRST, FIRST + 1, ...; one number always makes
the same trial. `python tests/kernel_fuzzing.py serve LOG` reads trials, one a line, and answers each with a line of
findings: so hypothesis draws trials and makes a failing one smaller, though a trial may end its process (`Server`).

A trial runs one use of the package on small random data and records the calls of kernels in it.
Then it repeats some of these calls in two ways. As recorded, with several threads, which must leave the same bytes as
one thread. And with one argument changed: another type, None, another shape, a wrong length, read-only, not
contiguous, numbers that are not finite. Such a call must return or raise an exception. Every array
ends (or starts) at a page of memory that the system protects, so that a kernel which reads or writes beyond it ends the
process; the last line of LOG then names the call.

Numbers at addresses which C does not allow for them must be refused. `kernel_scalars.py` changes integers.
Kernels trust the values of ids and row pointers, which the data views check once; so these are not changed. For the
same reason an array in which ids or places choose rows is not shortened (`CHOSEN_BY_IDS`).
"""

import ast
import ctypes
import importlib
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from inspect import isclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from threadpoolctl import threadpool_limits

import rankbench.kernels

STUBS = Path(rankbench.kernels.__file__).parent
PAGE = mmap.PAGESIZE
CALLS, CHANGES = 12, 6  # in a trial: recorded calls that are repeated, and changed calls for each of them
RACY = {"hogwild_pass"}  # threads overwrite each other on purpose
ONLY_CALLED_BY_KERNELS = {"Scratch"}
CHOSEN_BY_IDS = {
    *(("DescentFactors", name) for name in ("users", "items", "user_shrink", "item_shrink")),
    *((name, "factors") for name in ("losses", "users_half", "users_step")),
    *((name, "vectors") for name in ("gram_times", "improve_ridge", "ridge", "squared_errors", "sweep_ridge")),
    *((name, "gram") for name in ("dual", "expand", "pair_rounds")),
    ("path", "matrix"),
    ("primal", "features"),
    *((name, group) for name in ("bucket", "records_of") for group in ("item_group", "pair_of")),
    *((name, "indptr") for name in ("ComparisonRows", "Pattern", "SparseRows")),
    ("ItemFeatures", "dense"),
    ("PairDuals", "values"),
    ("per_user", "scores"),
    ("Stumps", "values"),
    ("Vectors", "items"),
    ("Vectors", "users"),
    ("WishRows", "candidates"),
    ("closed_form", "items"),
    ("inner_products", "right"),
    ("item_slopes", "slopes"),
    ("item_slopes", "users"),
    ("losses", "items"),
    *(("pairs", name) for name in ("rows", "columns")),
    ("products", "rows"),
    ("sparse_pairs", "weights"),
    ("times", "dense"),
}
COUNTED_BEFORE = {("list_pairs", "ratings.values")}  # another argument holds what was counted of these numbers


@dataclass(frozen=True)
class Entry:
    """A function or class that a stub declares."""

    module: str
    name: str


def entries() -> list[Entry]:
    """Every function of the kernels, and every class that has a constructor, from their stubs."""
    found = []
    for path in sorted(STUBS.rglob("*.pyi")):
        module = ".".join(["rankbench.kernels", *path.relative_to(STUBS).with_suffix("").parts])
        for node in ast.parse(path.read_text()).body:
            made = isinstance(node, ast.ClassDef) and any(isinstance(part, ast.FunctionDef) for part in node.body)
            if made or (isinstance(node, ast.FunctionDef) and node.args.kwonlyargs):
                found.append(Entry(module, node.name))
    return [entry for entry in found if entry.name not in ONLY_CALLED_BY_KERNELS]


# arrays beside protected memory


def guarded(values: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy of the array that ends where a protected page starts, or starts where one ends."""
    size = max(1, -(-values.nbytes // PAGE)) * PAGE
    block = mmap.mmap(-1, size + PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    if _LIBC.mprotect(ctypes.c_void_p(address + (size if at_end else 0)), ctypes.c_size_t(PAGE), 0):
        raise OSError(ctypes.get_errno(), "mprotect failed")
    offset = size - values.nbytes if at_end else PAGE
    made = np.ndarray(values.shape, values.dtype, block, offset)
    made[...] = values
    return made


_LIBC = ctypes.CDLL(None, use_errno=True)


# recording


@dataclass(frozen=True, eq=False)
class Call:
    """A call with copies of its arguments; an argument that is an object of a kernel is the call that made it."""

    entry: Entry
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.entry.module.removeprefix('rankbench.kernels.')}.{self.entry.name}"


class Recorder:
    """Takes the place of the kernels' functions and classes, and keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        modules = {entry: importlib.import_module(entry.module) for entry in entries()}  # all, before any is changed
        self.originals = {entry: getattr(module, entry.name) for entry, module in modules.items()}
        for entry, original in self.originals.items():
            wrap = self._recording_class if isclass(original) else self._recording_function
            setattr(modules[entry], entry.name, wrap(entry, original))

    def _recording_class(self, entry: Entry, original: type) -> type:
        """The class with the arguments of its constructor kept, so that it can be made again."""
        recorder = self

        class Recorded(original):  # type: ignore[misc]
            """The class of the kernel."""

            def __init__(self, **arguments: Any) -> None:
                super().__init__(**arguments)
                self.made_by = entry, arguments
                recorder.calls.append(Call(entry, copied(arguments)))

        return Recorded

    def _recording_function(self, entry: Entry, original: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which first keeps copies of its arguments."""

        def recorded(**arguments: Any) -> Any:
            self.calls.append(Call(entry, copied(arguments)))
            return original(**arguments)

        return recorded


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of the arguments as they are now."""
    return {name: _copy(value) for name, value in arguments.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.random.Generator):
        return State(value.bit_generator.state)
    if made_by := getattr(value, "made_by", None):
        return Call(made_by[0], copied(made_by[1]))
    return value


@dataclass(frozen=True)
class State:
    """The state of a random generator."""

    state: Any

    def generator(self) -> np.random.Generator:
        """A generator in this state."""
        bits = np.random.PCG64()
        bits.state = self.state
        return np.random.Generator(bits)


# repeating


Change = tuple[tuple[str, ...], str]  # the path to an argument, and what is changed


class Repeater:
    """Makes recorded calls again with the arrays beside protected memory."""

    def __init__(self, originals: dict[Entry, Any], rng: np.random.Generator) -> None:
        self.originals, self.rng = originals, rng

    def result(self, call: Call, **replaced: Any) -> list[bytes]:
        """The bytes of all that a call returns and of all arrays that it may have changed."""
        arrays: list[np.ndarray] = []
        arguments = self._made(call, None, arrays) | replaced
        returned = self.originals[call.entry](**arguments)
        parts = returned if isinstance(returned, tuple) else (returned,)
        kept = [np.asarray(part).tobytes() for part in parts if isinstance(part, (np.ndarray, int, float))]
        return kept + [array.tobytes() for array in arrays]

    def changed(self, call: Call, change: Change) -> None:
        """Make the call with one argument changed."""
        self.originals[call.entry](**self._made(call, change, []))

    def _made(self, call: Call, change: Change | None, arrays: list[np.ndarray]) -> dict[str, Any]:
        """The arguments of a call, made anew, with a change of one of them."""
        at_end = bool(self.rng.integers(2)) or change is not None
        made = {}
        for name, value in call.arguments.items():
            here = change if change and change[0][0] == name else None
            if isinstance(value, Call):
                below = (here[0][1:], here[1]) if here and len(here[0]) > 1 else None
                made[name] = self.originals[value.entry](**self._made(value, below, arrays))
            elif isinstance(value, State):
                made[name] = value.generator()
            elif isinstance(value, np.ndarray):
                made[name] = guarded(value, at_end)
                arrays.append(made[name])
            else:
                made[name] = value
            if here and len(here[0]) == 1:
                made[name] = self._change(made[name], here[1])
        return made

    def _change(self, value: Any, kind: str) -> Any:
        if kind.startswith(INTEGER):
            return int(kind.removeprefix(INTEGER))
        return CHANGES_OF_ARRAYS[kind](value) if kind in CHANGES_OF_ARRAYS else SCALARS[kind]


def _longer(array: np.ndarray) -> np.ndarray:
    """With its last row twice; a row of ones if there is none."""
    row = array[-1:] if len(array) else np.ones((1, *array.shape[1:]), array.dtype)
    return guarded(np.concatenate([array, row]), True)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _misaligned(array: np.ndarray) -> np.ndarray:
    """At an address that is half of its numbers' size from where they may lie."""
    size = array.nbytes + array.dtype.alignment
    block = guarded(np.zeros(size, np.uint8), True)
    made = np.ndarray(array.shape, array.dtype, block, array.dtype.alignment // 2)
    made[...] = array
    return made


def _filled(number: float) -> Callable[[np.ndarray], np.ndarray]:
    """Every third number replaced."""

    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[::3] = number
        return array

    return change


def _other_type(array: np.ndarray) -> np.ndarray:
    other = np.float32 if array.dtype != np.float32 else np.float64
    return np.zeros(array.shape, other)


ANY_ARRAY: dict[str, Callable[[np.ndarray], Any]] = {
    "another type": _other_type,
    "another byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "an array of objects": lambda array: np.zeros(array.shape, object),
    "one dimension more": lambda array: array[None],
    "no dimension": lambda array: np.zeros((), array.dtype),
    "not contiguous": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda array: array[::-1],
    "read-only": _read_only,
    "one row more": _longer,
}
SHORTER: dict[str, Callable[[np.ndarray], Any]] = {
    "one row less": lambda array: guarded(array[:-1], True),
    "half the rows": lambda array: guarded(array[: len(array) // 2], True),
    "no row": lambda array: guarded(array[:0], True),
    "no column": lambda array: guarded(array[..., :0], True),
    "one column less": lambda array: guarded(array[..., :-1], True),
}
NUMBERS = {str(number): _filled(number) for number in (np.nan, np.inf, -np.inf, 1e308, -1e-320, 0.0)}
CHANGES_OF_ARRAYS = ANY_ARRAY | SHORTER | NUMBERS | {"misaligned": _misaligned}
SCALARS: dict[str, Any] = {
    "the value None": None,
    "a text": "much",
    "2^70": 2**70,
    "-2^70": -(2**70),
    "a list": [1, 2],
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus one": -1.0,
}
INTEGER = "the integer "  # before any other number
OF_ANY_TYPE = ("the value None", "a text", "2^70", "-2^70", "a list")


def leaves(call: Call, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Each argument of a call and of the objects in it: its path, the entry that takes it, and its value."""
    for name, value in call.arguments.items():
        yield (*path, name), call.entry.name, value
        if isinstance(value, Call):
            yield from leaves(value, (*path, name))


def possible_changes(call: Call) -> list[Change]:
    """What may be changed of a call."""
    found: list[Change] = []
    for path, owner, value in leaves(call):
        if isinstance(value, np.ndarray):
            kinds = [*ANY_ARRAY, "the value None", "a text", "a list"]
            kinds += ["misaligned"] if value.size and value.dtype.alignment > 1 else []
            kinds += [] if (owner, path[-1]) in CHOSEN_BY_IDS else SHORTER
            counted = (call.entry.name, ".".join(path)) in COUNTED_BEFORE
            kinds += NUMBERS if value.dtype == np.float64 and not counted else []
        elif isinstance(value, float) and not isinstance(value, np.integer):
            kinds = [*OF_ANY_TYPE[:2], "nan", "infinity", "minus one"]
        else:
            kinds = list(OF_ANY_TYPE)
        found += [(path, kind) for kind in kinds]
    return found


# trials


@dataclass(frozen=True)
class Trial:
    """What decides a trial: the place of a use in `USES`, a seed, and the shape of the data unless it is drawn too."""

    use: int
    seed: int
    shape: tuple[int, int, int] | None = None

    def run(self, recorder: Recorder, log: TextIO) -> list[str]:
        """What the trial found wrong; a line of the log comes before each call."""
        from kernel_uses import USES, random_ratings  # it imports what uses the recorder's classes

        rng = np.random.default_rng(self.seed)
        recorder.calls.clear()
        use = USES[self.use % len(USES)]
        write(log, f"{self}: {use.__name__} on recorded data")
        with (
            np.errstate(all="ignore"),
            threadpool_limits(limits=1, user_api="blas"),
        ):  # BLAS must not start threads within those of kernels
            use(random_ratings(rng, self.shape), rng)
            calls = recorder.calls[:]
            return [wrong for call in _some(calls, rng) for wrong in _repeated(self, call, recorder, rng, log)]


def numbered(number: int) -> Trial:
    """The trial of a number."""
    return Trial(number, number)


def _some(calls: Sequence[Call], rng: np.random.Generator) -> list[Call]:
    """A few calls, of different entries as far as possible."""
    by_entry: dict[Entry, list[Call]] = {}
    for call in calls:
        by_entry.setdefault(call.entry, []).append(call)
    chosen = [group[rng.integers(len(group))] for group in by_entry.values()]
    return [chosen[place] for place in rng.permutation(len(chosen))[:CALLS]]


def _repeated(trial: Trial, call: Call, recorder: Recorder, rng: np.random.Generator, log: TextIO) -> Iterator[str]:
    """Repeat a call with other numbers of threads, then with changed arguments; yields what is wrong."""
    repeater = Repeater(recorder.originals, rng)
    if "threads" in call.arguments and call.entry.name not in RACY and not call.arguments.get("atomic"):
        write(log, f"{trial}: {call} with 1, 2, 3 and 8 threads")
        alone = repeater.result(call, threads=1)
        if any(repeater.result(call, threads=threads) != alone for threads in (2, 3, 8)):
            yield f"{trial}: {call} leaves other bytes with several threads"
    changes = possible_changes(call)
    for place in rng.permutation(len(changes))[:CHANGES]:
        path, kind = changes[place]
        write(log, f"{trial}: {call} with {'.'.join(path)}: {kind}")
        try:
            repeater.changed(call, changes[place])
            if kind == "misaligned":
                yield f"{trial}: {call} with {'.'.join(path)}: {kind} was taken"
        except Exception as error:  # any exception will do
            if isinstance(error, SystemError):
                yield f"{trial}: {call} with {'.'.join(path)}: {kind} raised {error!r}"


def write(log: TextIO, line: str) -> None:
    """Write a line that is in the file even if the process is killed in the next moment."""
    log.write(line + "\n")
    log.flush()


def main(first: int, count: int, path: str) -> int:
    """Run trials; the number of findings, which are printed."""
    recorder = Recorder()
    with Path(path).open("w") as log, redirect_stdout(sys.stderr):
        found = [wrong for number in range(first, first + count) for wrong in numbered(number).run(recorder, log)]
    print(*found, sep="\n")
    return len(found)


# trials in another process


def serve(path: str) -> None:
    """Run the trials that standard input has, one a line, and print the findings of each as a line."""
    recorder, answers = Recorder(), sys.stdout
    with Path(path).open("w") as log, redirect_stdout(sys.stderr):
        for line in sys.stdin:
            use, seed, shape = json.loads(line)
            write(answers, json.dumps(Trial(use, seed, tuple(shape)).run(recorder, log)))


class Server:
    """A process that runs trials; one that ends in a trial is a finding, and the next trial gets a new process."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", __file__, "serve", str(self.log)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.with_suffix(".errors").open("w"),
            text=True,
        )

    def findings(self, trial: Trial) -> list[str]:
        """What a trial found wrong; the last line of the log, if the process ended in it."""
        assert self.process.stdin and self.process.stdout
        try:
            write(self.process.stdin, json.dumps([trial.use, trial.seed, trial.shape]))
            if answer := self.process.stdout.readline():
                return list(json.loads(answer))
        except BrokenPipeError:
            pass
        code, lines = self.process.wait(), self.log.read_text().splitlines()
        self.process = self._started()
        return [f"the process ended with {code} after: {lines[-1] if lines else 'no trial'}"]

    def close(self) -> None:
        """End the process."""
        self.process.communicate("")


def calls_of_uses(rounds: int) -> Iterator[Call]:
    """The calls of kernels in so many rounds through all uses of the package."""
    recorder = Recorder()
    from kernel_uses import USES, random_ratings  # it imports what uses the recorder's classes

    with np.errstate(all="ignore"), threadpool_limits(limits=1, user_api="blas"), redirect_stdout(sys.stderr):
        for number in range(rounds * len(USES)):
            rng = np.random.default_rng(number)
            recorder.calls.clear()
            USES[number % len(USES)](random_ratings(rng), rng)
            yield from recorder.calls


def never_called(rounds: int) -> list[str]:
    """The kernels that no use of the package has called in so many rounds."""
    seen = {call.entry for call in calls_of_uses(rounds)}
    return [f"{entry.module}.{entry.name}" for entry in entries() if entry not in seen]


if __name__ == "__main__":
    if sys.argv[1] == "never-called":
        print(*never_called(rounds=3))
    elif sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(min(1, main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
