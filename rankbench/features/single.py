"""Item features of 32 bits, as embeddings are stored: half the memory, and every product in double precision."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankbench.core.contract import Floats

T = TypeVar("T")
_BLOCK = 1 << 17  # numbers that are doubles at a time, 1 MiB


@dataclass(frozen=True, eq=False)
class SingleFeatures:
    """Item features of 32 bits in a plain array, a row per item, or their squares.

    Blocks of rows become doubles and are multiplied by BLAS; what is summed over blocks is summed in their order, so
    that the bits are the same for any number of threads. Code that calls this sees to it that BLAS takes one thread.
    """

    matrix: npt.NDArray[np.float32]
    square: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of items and features."""
        return len(self.matrix), self.matrix.shape[1]

    @property
    def stored(self) -> npt.NDArray[np.float32]:
        """All stored values as a vector."""
        return self.matrix.ravel()

    @property
    def square_sum(self) -> float:
        """The sum of the squares of all values."""
        return float(sum(float(np.vdot(block, block)) for block in map(self._block, self._places())))

    def times(self, other: Floats, threads: int = 1) -> Floats:
        """X times a vector, or a matrix with a row per feature."""
        out = np.empty((len(self.matrix), *other.shape[1:]))

        def fill(rows: slice) -> None:
            out[rows] = self._block(rows) @ other

        for _ in _in_order(fill, self._places(), threads):
            pass
        return out

    def transposed_times(self, other: Floats, threads: int = 1) -> Floats:
        """X^T times a vector, or a matrix with a row per item."""
        out = np.zeros((self.matrix.shape[1], *other.shape[1:]))
        for part in _in_order(lambda rows: self._block(rows).T @ other[rows], self._places(), threads):
            out += part
        return out

    def squared(self) -> "SingleFeatures":
        """The square of every value."""
        return replace(self, square=True)

    def _places(self) -> list[slice]:
        """The blocks of rows."""
        size = max(1, _BLOCK // max(1, self.matrix.shape[1]))
        return [slice(first, first + size) for first in range(0, len(self.matrix), size)]

    def _block(self, rows: slice) -> Floats:
        block = self.matrix[rows].astype(np.float64)
        return np.square(block, out=block) if self.square else block


def is_single(matrix: Any) -> bool:
    """Whether it is a dense matrix of 32 bits."""
    return isinstance(matrix, np.ndarray) and matrix.dtype == np.float32


def as_doubles(matrix: Any) -> Any:
    """The matrix in double precision; itself if it is so already."""
    return matrix.astype(np.float64) if is_single(matrix) else matrix


def _in_order(work: Callable[[slice], T], places: list[slice], threads: int) -> Iterator[T]:
    """What comes of each block, in the order of the blocks."""
    if threads == 1 or len(places) < 2:
        yield from map(work, places)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, places)
