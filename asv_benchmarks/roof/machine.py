"""What this machine can do: bandwidth and latency of each cache level and of memory, flops, and calls of exp.

The loops stand in loops.py. Each limit is measured for each level of instructions that the kernels are built for.
"""

import ctypes
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import sqrt
from pathlib import Path
from time import process_time

import numpy as np
from work import Limits

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.level import BASELINE

SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}  # where the system does not tell
MEMORY = "memory"
_BEYOND = 128 << 20  # bytes that are beyond the caches, even where these are shared or unknown
LINE = 64  # bytes of a cache line
DOUBLES = 64  # the loops take multiples of it
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
Loop = Callable[[int], object]  # repeats a measured loop so many times


def caches(folder: Path = SYSTEM) -> dict[str, int]:
    """The bytes of each level of data caches, the smallest first; usual ones if the system does not tell."""
    told = [_told_by(place) for place in sorted(folder.glob("index*"))]
    return dict(sorted(cache for cache in told if cache)) or dict(USUAL)


def _told_by(place: Path) -> tuple[str, int] | None:
    """The name and size of a cache, as the system says; None for one of instructions, or if it is silent."""
    try:
        level, kind, size = ((place / name).read_text().strip() for name in ("level", "type", "size"))
    except OSError:
        return None
    read = re.fullmatch(r"(\d+)([KMG]?)", size)
    return (f"L{level}", int(read[1]) * UNITS.get(read[2], 1)) if read and kind != "Instruction" else None


@dataclass(frozen=True)
class Place:
    """Where data lies, and how fast it comes from there: bytes and lines per second, and lines one after the other."""

    bytes: float
    lines: float
    chained: float


@dataclass(frozen=True)
class Speeds:
    """What the instructions of a level can do."""

    flops: float
    places: dict[str, Place]


@dataclass(frozen=True)
class Machine:
    """All limits of a machine: by level of instructions, and those that do not depend on it."""

    caches: dict[str, int]
    levels: dict[str, Speeds]
    blas: float
    calls: float

    def place_of(self, size: float) -> str:
        """The smallest cache that holds so many bytes, or memory."""
        return next((name for name, held in self.caches.items() if size <= held), MEMORY)

    def limits(self, level: str, streamed: float, scattered: float, chased: float) -> Limits:
        """The limits of a kernel of this level, by the bytes that it streams through, picks lines from, and chases."""
        speeds = self.levels[level]
        near, far, chain = (speeds.places[self.place_of(size)] for size in (streamed, scattered, chased))
        return Limits(near.bytes, speeds.flops, self.blas, far.lines, chain.chained, self.calls)

    def best(self, other: "Machine") -> "Machine":
        """The higher of each limit: a limit is what was reached at least once."""
        levels = {name: _faster(speeds, other.levels[name]) for name, speeds in self.levels.items()}
        return Machine(self.caches, levels, max(self.blas, other.blas), max(self.calls, other.calls))


def _faster(one: Speeds, other: Speeds) -> Speeds:
    places = {
        name: Place(*(max(getattr(place, kind), getattr(other.places[name], kind)) for kind in vars(place)))
        for name, place in one.places.items()
    }
    return Speeds(max(one.flops, other.flops), places)


def nearer_as_fast(places: dict[str, Place]) -> dict[str, Place]:
    """The places, nearest first, each at least as fast as those beyond it, which a measurement may show otherwise."""
    found: dict[str, Place] = {}
    beyond = Place(0.0, 0.0, 0.0)
    for name, place in reversed(places.items()):
        beyond = found[name] = Place(*(max(getattr(place, kind), getattr(beyond, kind)) for kind in vars(place)))
    return {name: found[name] for name in places}


@dataclass(frozen=True, eq=False)
class Arena:
    """The arrays that the loops run over at one level."""

    size: int

    @cached_property
    def doubles(self) -> tuple[Floats, Floats, Floats]:
        """Three arrays that together have the size."""
        n = max(DOUBLES, self.size // 24 // DOUBLES * DOUBLES)
        return np.zeros(n), np.ones(n), np.ones(n)

    @cached_property
    def single(self) -> Floats:
        """One array of the size."""
        return np.ones(max(DOUBLES, self.size // 8 // DOUBLES * DOUBLES))

    @cached_property
    def order(self) -> Int32s:
        """All lines of the array, in random order."""
        lines = len(self.single) * 8 // LINE
        return np.random.default_rng(0).permutation(lines).astype(np.int32)

    @cached_property
    def links(self) -> Int64s:
        """A ring through all lines, in the same order."""
        links = np.zeros(len(self.single), np.int64)
        links[self.order.astype(np.int64) * 8] = np.roll(self.order, -1)
        return links


@dataclass(frozen=True)
class Meter:
    """Measures the machine: `look` takes each of its limits once."""

    libraries: dict[str, ctypes.CDLL]
    least: float  # seconds that each loop runs for
    share: float = 1.0  # of the arrays beyond the caches, which are slow to make
    caches: dict[str, int] = field(default_factory=caches)
    product: int = 512  # rows of the matrices that BLAS multiplies

    @cached_property
    def arenas(self) -> dict[str, Arena]:
        """The arrays for each level: for a cache between its own size and that of the one before."""
        sizes = list(self.caches.values())
        between = [sizes[0] / 2, *(sqrt(low * high) for low, high in pairwise(sizes))]
        arenas = {name: Arena(round(size)) for name, size in zip(self.caches, between, strict=True)}
        return {**arenas, MEMORY: Arena(round(self.share * max(4 * sizes[-1], _BEYOND)))}

    def look(self) -> Machine:
        """All limits."""
        levels = {name: self._speeds(library) for name, library in self.libraries.items()}
        library = self.libraries[BASELINE]
        start = _address(np.array([0.5]))
        calls = 4 * self._rate(lambda times: library.exponentials(start, _count(times)))
        return Machine(self.caches, levels, self._blas(), calls)

    def _speeds(self, library: ctypes.CDLL) -> Speeds:
        start = np.array([0.5, 0.25])
        turns = self._rate(lambda times: library.operate(_address(start), _count(times)))
        places = {name: self._place(library, arena) for name, arena in self.arenas.items()}
        return Speeds(turns * library.operations(), nearer_as_fast(places))

    def _place(self, library: ctypes.CDLL, arena: Arena) -> Place:
        single, order, links, lines = arena.single, arena.order, arena.links, _count(len(arena.order))
        pointers, n = [_address(part) for part in arena.doubles], _count(len(arena.doubles[0]))
        read = self._rate(lambda times: library.read_all(_address(single), _count(len(single)), _count(times)))
        moved = self._rate(lambda times: library.triad(*pointers, n, _count(times)))
        picked = self._rate(lambda times: library.gather(_address(single), _address(order), lines, _count(times)))
        chained = self._rate(lambda times: library.chase(_address(links), _count(times)))
        return Place(max(read * single.nbytes, moved * 24 * len(arena.doubles[0])), picked * len(order), chained)

    def _blas(self) -> float:
        """The flops per second of a product of matrices; the caller keeps BLAS on one thread."""
        matrix = np.ones((self.product, self.product))
        out = np.empty_like(matrix)
        return 2 * self.product**3 * self._rate(lambda times: [np.matmul(matrix, matrix, out) for _ in range(times)])

    def _rate(self, loop: Loop) -> float:
        """Repetitions per second of CPU time, of as many as take long enough."""
        times = 1
        while (taken := _seconds(loop, times)) < self.least:
            times *= 2 if taken < self.least / 16 else 1 + int(self.least / taken)
        return times / taken


def _seconds(loop: Loop, times: int) -> float:
    start = process_time()
    loop(times)
    return process_time() - start


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _count(number: int) -> ctypes.c_int64:
    return ctypes.c_int64(number)


def described(machine: Machine) -> list[str]:
    """The limits as lines of text."""
    lines = [f"{_processor()}: BLAS {machine.blas / 1e9:.1f} Gflop/s, exp {1e9 / machine.calls:.1f} ns"]
    for level, speeds in machine.levels.items():
        lines.append(f"{level}: {speeds.flops / 1e9:.1f} Gflop/s without fused operations")
        lines += [
            f"{level}: {_line_of(name, place, machine.caches.get(name))}" for name, place in speeds.places.items()
        ]
    return lines


def _line_of(name: str, place: Place, size: int | None) -> str:
    held = f"{name} ({size >> 10} KiB)" if size else name
    return (
        f"{held}: {place.bytes / 1e9:.1f} GB/s, a random line in {1e9 / place.lines:.2f} ns,"
        f" after another {1e9 / place.chained:.1f} ns"
    )


def _processor() -> str:
    """The processor's name."""
    path = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", path.read_text()) if path.exists() else None
    return named[1] if named else platform.machine()
