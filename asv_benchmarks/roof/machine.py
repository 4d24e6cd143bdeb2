"""What this machine can do: bandwidth and random lines of each cache level and of memory, flops, and calls of exp.

The loops stand in loops.py. Each limit is measured for each level of instructions that the kernels are built for.
"""

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import sqrt
from pathlib import Path
from time import process_time

import numpy as np
from work import Amounts

from rankbench.core.contract import Floats, Int32s
from rankbench.core.system import cpu_name
from rankbench.kernels.level import BASELINE

SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}  # where the system does not tell
MEMORY = "memory"
WHERE = ("bytes", "lines")  # kinds of work for which it matters where the data lies
ANYWHERE = ("blas", "calls")  # kinds that do not depend on the level of our instructions
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
class Machine:
    """What a machine can do in a second, by the kind of work, the level of instructions, and where the data lies.

    The level is empty for BLAS and calls of the mathematical library, and the place for these and for flops.
    """

    caches: Mapping[str, int]  # bytes, the smallest first
    rates: Mapping[tuple[str, str, str], float]

    def place_of(self, size: float) -> str:
        """The smallest cache that holds so many bytes, or memory."""
        return next((name for name, held in self.caches.items() if size <= held), MEMORY)

    def limits(self, level: str, streamed: float, scattered: float) -> Amounts:
        """The limits of a kernel of this level, by the bytes that it streams through and picks lines from."""
        near = {"bytes": streamed, "lines": scattered}
        found = {kind: self.rates[kind, level, self.place_of(size)] for kind, size in near.items()}
        return found | {"flops": self.rates["flops", level, ""]} | {kind: self.rates[kind, "", ""] for kind in ANYWHERE}

    def best(self, other: "Machine") -> "Machine":
        """The higher of each limit: a limit is what was reached at least once."""
        return Machine(self.caches, {kind: max(rate, other.rates[kind]) for kind, rate in self.rates.items()})


def nearer_as_fast(places: Mapping[str, Amounts]) -> Mapping[str, Amounts]:
    """The places, nearest first, each at least as fast as those beyond it, which a measurement may show otherwise."""
    names, found = list(places), {}
    for number, name in enumerate(names):
        found[name] = {kind: max(places[other][kind] for other in names[number:]) for kind in WHERE}
    return found


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
        start = np.array([0.5, 0.25])
        base = self.libraries[BASELINE]
        calls = 4 * self._rate(lambda times: base.exponentials(start, times))
        rates = {("blas", "", ""): self._blas(), ("calls", "", ""): calls}
        for level, library in self.libraries.items():
            turns = self._rate(lambda times, loops=library: loops.operate(start, times))
            rates["flops", level, ""] = turns * library.operations()
            places = nearer_as_fast({name: self._place(library, arena) for name, arena in self.arenas.items()})
            rates |= {(kind, level, name): rate for name, place in places.items() for kind, rate in place.items()}
        return Machine(self.caches, rates)

    def _place(self, library: ctypes.CDLL, arena: Arena) -> Amounts:
        single, order, doubles = arena.single, arena.order, arena.doubles
        read = self._rate(lambda times: library.read_all(single, len(single), times))
        moved = self._rate(lambda times: library.triad(*doubles, len(doubles[0]), times))
        picked = self._rate(lambda times: library.gather(single, order, len(order), times))
        most = max(read * single.nbytes, moved * 24 * len(doubles[0]))
        return dict(zip(WHERE, (most, picked * len(order)), strict=True))

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


def described(machine: Machine) -> list[str]:
    """The limits as lines of text."""
    rates, held = machine.rates, {name: f"{name} ({size >> 10} KiB)" for name, size in machine.caches.items()}
    blas, calls = (rates[kind, "", ""] for kind in ANYWHERE)
    lines = [f"{cpu_name()}: BLAS {blas / 1e9:.1f} Gflop/s, exp {1e9 / calls:.1f} ns"]
    for (kind, level, place), rate in rates.items():
        if kind == "flops":
            lines.append(f"{level}: {rate / 1e9:.1f} Gflop/s without fused operations")
        if kind == "bytes":
            fast = f"{rate / 1e9:.1f} GB/s, a random line in {1e9 / rates['lines', level, place]:.2f} ns"
            lines.append(f"{level}: {held.get(place, place)}: {fast}")
    return lines
