"""LLMFAO (Ustalov, 2023): people compare the answers of language models to the same prompts."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import records
from rankbench.data.views import Comparisons

_FILE = "llmfao.csv"
_COLUMNS = ("worker", "winner", "left", "right")
_ROWS, _TIES = 8_931, 3_471
_COMMIT = "6ef8c100e4af998eac7b788b25b3482beddb440e"


@dataclass(frozen=True)
class LLMFAO(FromFiles):
    """124 people compare the answers of 59 language models to 13 prompts: 5,460 comparisons that are no ties.

    `rankbench rank` reads the file itself, with its 3,471 ties.
    """

    version: ClassVar[int] = 1
    origin: ClassVar[Publication] = Publication(
        name="llmfao",
        size="124 users, 59 items, 5,460 comparisons and 3,471 ties",
        licence="Apache 2.0",
        home="D. Ustalov, https://github.com/dustalov/llmfao",
        needs=((_FILE,),),
        downloads=(
            Download(
                _FILE,
                (f"https://raw.githubusercontent.com/dustalov/evalica/{_COMMIT}/{_FILE}",),
                "106564a4bf06f047a4662979384313c22d9b4ca901e780f9e8419f8e5581adb1",
            ),
        ),
    )

    def table_of_votes(self) -> Path:
        """The table of all comparisons, ties included, for `rankbench rank`."""
        return self.origin.files().find(_FILE).path

    def _parse(self, files: Files) -> Comparisons:
        file = files.find(_FILE)
        rows = [fields for _, fields in records(file, ",", 8, quoted=True)]
        if not rows or not set(_COLUMNS) <= set(rows[0]):
            raise UserError(f"{file} has no columns {', '.join(_COLUMNS)}")
        places = [rows[0].index(name) for name in _COLUMNS]
        workers, winners, left, right = (np.array([row[place] for row in rows[1:]]) for place in places)
        kept, won = winners != "tie", winners == "left"
        if (len(winners), int((~kept).sum())) != (_ROWS, _TIES):
            raise UserError(
                f"{file}: {len(winners):,} comparisons with {(~kept).sum():,} ties, not {_ROWS:,} with {_TIES:,}"
            )
        user_ids, users = np.unique(workers.astype(int), return_inverse=True)
        item_ids, items = np.unique(np.concatenate([left, right]), return_inverse=True)
        one, other = np.split(items, 2)
        better, worse = np.where(won, one, other), np.where(won, other, one)
        return Comparisons.from_triples(
            users[kept], better[kept], worse[kept], len(user_ids), len(item_ids), user_ids=user_ids, item_ids=item_ids
        )
