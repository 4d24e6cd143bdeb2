"""Blocks: some rows of a run or a truth, with each distinct id once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rankbench.core.contract import Floats, Int32s

Ids = npt.NDArray[np.object_]
ROWS = 1 << 21  # rows in a block


@dataclass(frozen=True, eq=False)
class Column:
    """The ids of a block: each distinct one, and for every row which one it has."""

    names: Ids
    codes: Int32s


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a run or a truth, in their order."""

    users: Column
    items: Column
    values: Floats

    def __len__(self) -> int:
        return len(self.values)


def column_of(found: Any, names: Any) -> Column:
    """A column from the number of each row's id, below 0 where it is missing, and the ids."""
    codes: Int32s = np.array(found, np.int32)
    texts = np.array([*(str(name).strip() for name in names), ""], object)
    codes[codes < 0] = len(texts) - 1
    return Column(texts, codes)
