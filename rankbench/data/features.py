"""Named 0/1 item features from words, such as genres, title words, decades and directors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.errors import UserError
from rankbench.data.tables.fields import Ids

_DENSE = 100  # up to this many columns a dense array is smaller and faster than a sparse one
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\((\d{4})\)\s*$")


@dataclass(frozen=True)
class Block:
    """A feature matrix with a row per item and a column per feature, and the columns' names."""

    names: Ids
    matrix: Any


@dataclass(frozen=True)
class Features:
    """The words that describe each item, for every kind of feature (genres, titles, ...)."""

    words: Mapping[str, Mapping[Any, Iterable[str]]]  # kind -> item id -> words

    def of(self, item_ids: Ids) -> Block:
        """The 0/1 features of these items: a column for each word that an item has, kind after kind."""
        blocks = [
            _block(kind, [table.get(item, ()) for item in item_ids.tolist()]) for kind, table in self.words.items()
        ]
        names = np.concatenate([block.names for block in blocks])
        if len(names) == 0:
            raise UserError(f"no item has any {' or '.join(self.words)}: leave these features out")
        matrix = scipy.sparse.hstack([block.matrix for block in blocks], format="csr")
        return Block(names, matrix.toarray() if len(names) <= _DENSE else scipy.sparse.csr_array(matrix))


def kinds(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The kinds of features in a text like `genres+titles`; empty for `none`."""
    if text == "none":
        return ()
    asked = tuple(dict.fromkeys(text.split("+")))
    if strange := [kind for kind in asked if kind not in known]:
        raise UserError(f"unknown features {strange[0]!r}: choose from {', '.join(known)}, joined by +, or none")
    return asked


def title_words(title: str) -> list[str]:
    """The words of a title in lower case, without its year."""
    return _WORD.findall(_YEAR.sub("", title).lower())


def decade(title: str) -> list[str]:
    """The decade of the year in brackets at the end of a title, `1990s`; empty if there is no year."""
    match = _YEAR.search(title)
    return [f"{match[1][:3]}0s"] if match else []


def _block(kind: str, words: list[Iterable[str]]) -> Block:
    """The features of one kind: a 0/1 column per distinct word, in alphabetical order."""
    rows = [sorted(set(item)) for item in words]
    distinct = sorted(set().union(*rows))
    number = {word: index for index, word in enumerate(distinct)}
    indices = [number[word] for row in rows for word in row]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    matrix = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(distinct)))
    return Block(np.array([f"{kind}:{word}" for word in distinct], dtype=np.str_), matrix)
