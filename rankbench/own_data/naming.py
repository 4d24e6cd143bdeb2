"""From what a user typed, a path or a name, to the name of a data set."""

from pathlib import Path

from rankbench.data import DATASETS
from rankbench.data.files import File
from rankbench.data.sources.headers import found_in
from rankbench.data.tables import lines
from rankbench.errors import UserError
from rankbench.names import Named
from rankbench.names.user_files import is_file, is_from_file, own_path

_KINDS = {".parquet": "parquet:", ".pq": "parquet:", ".arrow": "arrow:", ".feather": "arrow:"}
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
    if path.is_dir():
        raise UserError(f"{name!r} is a folder", remedy="name the file of ratings or pairs in it")
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
    return _KINDS.get(path.suffix.lower()) or _kind_of_text(path)


def _kind_of_text(path: Path) -> str:
    """The kind of a text file: its header says so, or a third column without numbers, or that there are but two."""
    try:
        head = [text for _, (_, text) in zip(range(2), lines(File(path), "utf-8-sig"), strict=False)]
    except UserError:
        return "csv:"  # reading the rows will raise the error, which names the line
    rows = [[part.strip().strip('"') for part in text.split(_separator(text))] for text in head]
    if not rows or found_in(rows[0], ("rating",)):
        return "csv:"
    if found_in(rows[0], _PAIRS) or all(len(row) == len(_PAIRS) and not _is_number(row[2]) for row in rows):
        return "pairs:"
    return "clicks:" if found_in(rows[0], ("user", "item")) or max(map(len, rows)) == len(_PAIRS) - 1 else "csv:"


def _separator(text: str) -> str:
    """The separator that cuts a line into most fields."""
    return max(_SEPARATORS, key=text.count)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
