"""From what a user typed, a path or a name, to the name of a data set."""

import os
from pathlib import Path

from rankbench.core.errors import UserError
from rankbench.data import COLUMNAR, DATASETS
from rankbench.data.files import File
from rankbench.data.sources.headers import found_in, named
from rankbench.data.tables import lines
from rankbench.data.tables.fields import is_number
from rankbench.names import Named
from rankbench.names.user_files import is_file, is_from_file, own_path

_HEAD = 200  # lines that are looked at
_CLICKS = ("user", "item")
_PAIRS = ("user", "better", "worse")
_SEPARATORS = ("::", "\t", ";", ",", "|")


def data_named(text: str) -> Named:
    """The data set that a user means: a file of ratings or of pairs, with or without its kind, or any known name.

    The kind of a file follows from the end of its name, or from its header: `ratings.csv` is `csv:ratings.csv`, and
    `pairs:judged.csv` if the header names a better and a worse item. Settings stay: `ratings.csv[sep=;]`.
    """
    name = text.partition("[")[0]
    if is_from_file(text) or DATASETS.knows(name):
        return DATASETS.resolve(text)
    path = own_path(name)
    if os.path.isdir(path):
        raise UserError(f"{name!r} is a folder", remedy="name the file of ratings or pairs in it")
    if path.suffix == ".py":
        raise UserError(f"{name!r} is a file of Python, not of data", remedy=f"a data set in it is {name}:CLASS")
    if not is_file(path) and is_file(own_path(text)):
        raise UserError(f"the path {text!r} has brackets, which hold settings here", remedy="rename it, or make a link")
    if not is_file(path):
        known = "or the name of a data set (rankbench list datasets)"
        raise UserError(f"no file {name!r}", remedy=f"check the path, {known}")
    return _as_kind(_kind_of(path), text)


def _as_kind(kind: str, text: str) -> Named:
    """The data set of this kind; `clicks:` stands for a text file of users and items without ratings."""
    if kind != "clicks:":
        return DATASETS.resolve(kind + text)
    return DATASETS.resolve(DATASETS.resolve(f"csv:{text}").with_chosen((("positive", True),)))


def _kind_of(path: Path) -> str:
    """The kind of a file: by the end of its name, else by its first lines."""
    kind = COLUMNAR.get(Path(path.name.removesuffix(".gz")).suffix.lower())
    return f"{kind}:" if kind else _kind_of_text(path)


def _kind_of_text(path: Path) -> str:
    """The kind of a text file: as its header says, or without one, as its first lines look."""
    try:
        head = [text for _, (_, text) in zip(range(_HEAD), lines(File(path), "utf-8-sig"), strict=False)]
    except UserError:
        return "csv:"  # reading the rows will raise the error, which names the line
    rows = [[part.strip().strip('"') for part in text.split(_separator(text))] for text in head]
    if not rows or found_in(rows[0], ("rating",)):
        return "csv:"
    if found_in(rows[0], _PAIRS) or _look_like_pairs(rows):
        return "pairs:"
    return "clicks:" if _names_no_more(rows[0]) or max(map(len, rows)) == len(_CLICKS) else "csv:"


def _look_like_pairs(rows: list[list[str]]) -> bool:
    """Whether these are a user and two items: no third field is a number, and some is a second field elsewhere."""
    if any(len(row) != len(_PAIRS) or is_number(row[2].replace(",", ".")) for row in rows):
        return False
    return bool({row[1] for row in rows} & {row[2] for row in rows})


def _names_no_more(header: list[str]) -> bool:
    """Whether a header names users and items and at most a time besides, so that no column can be a rating."""
    return found_in(header, _CLICKS) is not None and len(header) - len(named(header, "timestamp")) == len(_CLICKS)


def _separator(text: str) -> str:
    """The separator that cuts a line into most fields."""
    return max(_SEPARATORS, key=text.count)
