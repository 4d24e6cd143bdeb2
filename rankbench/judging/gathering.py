"""The rows of a run or a truth, brought together by user: in memory, or of long runs in files, a part at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from rankbench.core.contract import Int32s, Int64s
from rankbench.core.errors import MAKE_ROOM, writing_to
from rankbench.core.temporary import own_folder
from rankbench.judging.blocks import Block, Column

BUCKETS = 64  # into which users are sorted
_HELD = 1 << 25  # rows that are held in memory, of 16 bytes each
_TOGETHER = 1 << 21  # rows that are evaluated at a time

Rows = npt.NDArray[np.void]
_ROW = np.dtype([("user", np.int32), ("item", np.int32), ("value", np.float64)])


class Numbering:
    """A number for each published id, in the order in which ids were met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, column: Column) -> Int32s:
        """The number of every row's id; an id that was not met before gets the next one."""
        known = self._numbers
        own = np.fromiter((known.setdefault(name, len(known)) for name in column.names), np.int32, len(column.names))
        return own[column.codes]

    @property
    def texts(self) -> list[str]:
        """The ids by their numbers."""
        return list(self._numbers)

    @property
    def ranks(self) -> Int64s:
        """By number: the place of the id among all ids in the order of their letters."""
        texts = np.array(self.texts, dtype=np.str_)
        found = np.empty(len(texts), np.int64)
        found[np.argsort(texts, kind="stable")] = np.arange(len(texts))
        return found


@dataclass(frozen=True, eq=False)
class Ids:
    """The numbers of all users and items that were met, in truths and runs."""

    users: Numbering = field(default_factory=Numbering)
    items: Numbering = field(default_factory=Numbering)


class Gathering:
    """Rows by the bucket of their user; use it as a context, since long ones lie in files."""

    def __init__(self) -> None:
        self._buckets: list[list[Rows]] = [[] for _ in range(BUCKETS)]
        self._sizes = np.zeros(BUCKETS, np.int64)
        self._held = 0
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> "Gathering":
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @classmethod
    def of(cls, blocks: Iterable[Block], ids: Ids) -> "Gathering":
        """The rows of all blocks; users and items that were not met before get numbers."""
        found = cls()
        for block in blocks:
            found._add(block, ids.users, ids.items)
        return found

    def _add(self, block: Block, users: Numbering, items: Numbering) -> None:
        rows = np.empty(len(block), _ROW)
        rows["user"], rows["item"], rows["value"] = users.numbers(block.users), items.numbers(block.items), block.values
        buckets = (rows["user"] % BUCKETS).astype(np.uint8)
        rows = rows[np.argsort(buckets, kind="stable")]
        counts = np.bincount(buckets, minlength=BUCKETS)
        for bucket, own in enumerate(np.split(rows, np.cumsum(counts)[:-1])):
            if len(own):
                self._buckets[bucket].append(own)
        self._sizes += counts
        self._held += len(rows)
        if self._held > _HELD:
            self._spill()

    def parts(self) -> Iterator[tuple[npt.NDArray[np.bool_], Rows]]:
        """The rows in parts, each of whole buckets, with rows sorted by user and otherwise in their order.

        With each part come the buckets it holds; every bucket is in one part, if it has rows or not.
        """
        chosen: list[int] = []
        for bucket in range(BUCKETS):
            chosen.append(bucket)
            here = self._sizes[chosen].sum()
            if bucket == BUCKETS - 1 or here + self._sizes[bucket + 1] > _TOGETHER:
                rows = np.concatenate([np.empty(0, _ROW), *(one for own in chosen for one in self._rows(own))])
                yield np.isin(np.arange(BUCKETS), chosen), rows[np.argsort(rows["user"], kind="stable")]
                chosen = []

    def whole(self) -> Rows:
        """All rows at once, sorted by user and otherwise in their order."""
        rows = np.concatenate([part for _, part in self.parts()])
        return rows[np.argsort(rows["user"], kind="stable")]

    def _rows(self, bucket: int) -> list[Rows]:
        if self._folder is None:
            return self._buckets[bucket]
        return [np.fromfile(Path(self._folder.name) / f"{bucket}.rows", _ROW), *self._buckets[bucket]]

    def _spill(self) -> None:
        """Write the rows in memory to the files of their buckets."""
        if self._folder is None:
            self._folder = TemporaryDirectory(dir=own_folder())
        with writing_to(self._folder.name, MAKE_ROOM):
            for bucket, pieces in enumerate(self._buckets):
                with (Path(self._folder.name) / f"{bucket}.rows").open("ab") as stream:
                    for piece in pieces:
                        piece.tofile(stream)
                pieces.clear()
        self._held = 0
