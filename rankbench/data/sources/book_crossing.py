"""Book-Crossing (Ziegler and others, 2005): books rated from 1 to 10."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Ints
from rankbench.core.errors import UserError
from rankbench.data.building import Counts, Repeats, expect, ratings
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import Rows, read
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.texts import Coded
from rankbench.data.views import Ratings

_DUMP = "http://www2.informatik.uni-freiburg.de/~cziegler/BX/BX-CSV-Dump.zip"
_FORTES = (
    "https://raw.githubusercontent.com/caserec/Datasets-for-Recommender-Systems/"
    "82b08c787a6b50d78129b9df842285b89bc05b85/Processed%20Datasets/BookCrossing/book_crossing.zip"
)
_IN_DUMP = Layout(
    separator=";", header=1, encoding="latin-1", scale=(0, 10), step=1, text_ids=True, quoted=True, escape="\\"
)


@dataclass(frozen=True)
class Edition:
    """One edition: its files, and the published numbers of what is in them."""

    names: tuple[str, ...]  # of its file; the first that is at hand is read
    layout: Layout
    size: str
    counts: Counts | None = None  # of ratings, users and books
    rows: tuple[int, int] | None = None  # all rows, and those with ratings, where a 0 is none
    repeats: Repeats = "error"
    downloads: tuple[Download, ...] = ()


_FIRST = Counts(79_264, 13_208, 52_050)
_FILTERED = Counts(62_656, 1_295, 14_684)  # its README says 62,657, which counts the header line
_EDITIONS = {
    "full": Edition(
        ("BX-Book-Ratings.csv",),
        _IN_DUMP,
        "278,858 users, 271,379 books, 1,149,780 rows of which 433,671 are ratings",
        rows=(1_149_780, 433_671),
        downloads=(Download("BX-CSV-Dump.zip", (_DUMP, f"https://web.archive.org/web/20230623001827id_/{_DUMP}")),),
    ),
    "first": Edition(
        ("BX-Book-Ratings.first199999.csv", "BX-Book-Ratings.first199999.csv.gz"),
        replace(_IN_DUMP, quoted=False, escape=None),
        f"{_FIRST} (of 199,999 rows)",
        _FIRST,
        rows=(199_999, 79_269),
        repeats="last",
    ),
    "filtered": Edition(
        ("book_ratings.dat",),
        Layout(separator="\t", header=1, scale=(1, 10), step=1),
        str(_FILTERED),
        _FILTERED,
        downloads=(
            Download(
                "book_crossing.zip",
                (_FORTES,),
                "a796eb89e3200a91eb48161079a9abbba0a8e89e1df27bfbd63d8f6b2f7927d8",
            ),
        ),
    ),
}


@dataclass(frozen=True)
class BookCrossing(FromFiles):
    """Books rated from 1 to 10, from the published dump; a 0 in the dump means a book was viewed and is not a rating.

    `edition` is `full`, the dump itself, where each pair of a user and an ISBN occurs once (it is the key of
    the table); `first`, its first 199,999 rows as saved by a spreadsheet program; or `filtered` by A. Fortes, with
    users of 20 or more and books of 10 or more rows and new ids. The spreadsheet program removed leading zeros of
    ISBNs, so in `first` five pairs of different ISBNs became equal: their last rating is kept.
    """

    edition: Literal["full", "first", "filtered"] = "full"
    title: ClassVar = "Book-Crossing"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Publication:
        """The origin of the selected edition."""
        edition = _EDITIONS[self.edition]
        return Publication(
            name="book-crossing",
            spec="book-crossing" if self.edition == "full" else f"book-crossing[edition={self.edition}]",
            size=edition.size,
            licence="free for research with citation (Ziegler and others 2005)",
            home="C.-N. Ziegler, http://www2.informatik.uni-freiburg.de/~cziegler/BX/",
            needs=(edition.names,),
            downloads=edition.downloads,
            hashes={
                "BX-Book-Ratings.first199999.csv.gz": "2d9f1d71f459358d5b81e735520fbdb06c842c0119bce6fecd8eaaabc0f0b34b"
            },
            how="the first 199,999 rows of BX-Book-Ratings.csv, as BX-Book-Ratings.first199999.csv",
        )

    def _parse(self, files: Files) -> Ratings:
        """All ratings; in `full` and `first` the item ids are ISBNs."""
        edition = _EDITIONS[self.edition]
        rows = read(files.find(*edition.names), edition.layout)
        view = ratings(_explicit(rows, edition.rows) if edition.rows else rows, repeats=edition.repeats)
        if edition.counts:
            expect(view, edition.counts, f"book-crossing[edition={self.edition}]")
        return view


def _explicit(rows: Rows, published: tuple[int, int]) -> Rows:
    """The rows with ratings, with users as numbers; an error if their number is not the published one."""
    assert rows.values is not None
    kept = np.flatnonzero(rows.values)
    if (found := (len(rows.values), len(kept))) != published:
        counts = "{:,} rows with {:,} ratings"
        raise UserError(
            f"{rows.file} holds {counts.format(*found)} where {counts.format(*published)} were published: "
            "the file is cut or another edition"
        )
    kept_rows = rows.take(kept)
    users, books = kept_rows.ids
    return replace(kept_rows, ids=(_numbers(kept_rows, users), books))


def _numbers(rows: Rows, column: Coded) -> Ints:
    """A column of text as numbers."""
    wrong = ~np.char.isdecimal(column.texts) | (np.char.str_len(column.texts) > 18)
    if wrong.any():
        row = int(np.argmax(wrong[column.codes]))
        rows.complain(row, f"user {str(column[row])!r} is no whole number of 64 bits")
    return column.texts.astype(np.int64)[column.codes]
