"""Jester dataset 1 (Goldberg and others, 2001): jokes rated on a continuous scale."""

import io
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.building import Counts, expect
from rankbench.data.files import File, Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import lines, records
from rankbench.data.tables.fields import unreadable
from rankbench.data.tables.parsing import to_the_last_bit
from rankbench.data.tables.watched import Watched
from rankbench.data.views import Ratings
from rankbench.names import AddedLater

_COUNTS = {"1": Counts(1_810_455, 24_983, 100), "all": Counts(4_136_360, 73_421, 100)}
_NUMBERS = {"1": (1,), "all": (1, 2, 3)}
_SHA256 = {
    1: "cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
    2: "4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b",
    3: "7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d",
}
_FIELDS = 101  # the number of jokes that the user rated, then a rating of each of 100 jokes
_NOT_RATED = 99
_HIGHEST = 10
_NO_XLRD = 'reading .xls needs another package: pip install "rankbench[xls]"'


@dataclass(frozen=True)
class Jester(FromFiles):
    """100 jokes rated from -10 to 10; part 1 (24,983 users) or all three parts (73,421 users).

    Each part is a sheet (.xls as published, or saved as .csv) with a row per user. Users are numbered from 1
    in the order of the rows, over all parts in order.

    With `scale=stars` the ratings are moved linearly to 1 to 5, as NDCG needs, whose gains are those of ratings of at
    least 0.
    """

    parts: Literal["1", "all"] = "1"
    scale: Annotated[Literal["published", "stars"], AddedLater()] = "published"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Publication:
        """The origin: the files of the selected parts."""
        numbers = _NUMBERS[self.parts]
        return Publication(
            name="jester",
            spec="jester" if self.parts == "1" else f"jester[parts={self.parts}]",
            size=str(_COUNTS[self.parts]),
            licence="free for research with citation (Goldberg and others 2001)",
            home="K. Goldberg, UC Berkeley, https://eigentaste.berkeley.edu/dataset/",
            needs=tuple(_names(number) for number in numbers),
            downloads=tuple(_download(number) for number in numbers),
            hashes={"jester-data-1.zip": "4adf783a1e03bd3be063315cb6e0a064fe63e983fd289d01b8e401a8e6c41e5f"},
        )

    def _parse(self, files: Files) -> Ratings:
        sheets = [_sheet(files.find(*_names(number))) for number in _NUMBERS[self.parts]]
        values = np.concatenate([sheet[:, 1:] for sheet in sheets])
        users, jokes = np.nonzero(values != _NOT_RATED)
        n_users, n_jokes = values.shape
        numbers = {"user_ids": np.arange(1, n_users + 1), "item_ids": np.arange(1, n_jokes + 1)}
        ratings = values[users, jokes]
        if self.scale == "stars":
            ratings = 3.0 + ratings * 0.2
        view = Ratings.from_triples(users, jokes, ratings, n_users, n_jokes, **numbers)
        expect(view, _COUNTS[self.parts], f"jester[parts={self.parts}]")
        return view


def _names(number: int) -> tuple[str, str]:
    """The possible file names of a part; the first is faster to read."""
    return f"jester-data-{number}.csv", f"jester-data-{number}.xls"


def _download(number: int) -> Download:
    name = f"jester_dataset_1_{number}.zip"
    archive = "https://web.archive.org/web/20250409222630/https://eigentaste.berkeley.edu/dataset/archive"
    return Download(name, (f"https://eigentaste.berkeley.edu/dataset/{name}", f"{archive}/{name}"), _SHA256[number])


def _sheet(file: File) -> Floats:
    """The table of a part, a row per user; an error if a number is out of range or a count is wrong."""
    is_xls = str(file).endswith(".xls")
    table = _from_xls(file) if is_xls else _from_csv(file)
    ratings = table[:, 1:]
    rated = ratings != _NOT_RATED
    wrong = rated & ~(np.abs(ratings) <= _HIGHEST)
    if wrong.any():
        row, joke = (int(indices[0]) for indices in np.nonzero(wrong))
        limits = f"must be from -{_HIGHEST} to {_HIGHEST}, or {_NOT_RATED} for none"
        _complain(file, is_xls, row, f"rating {ratings[row, joke]:g} of joke {joke + 1} is out of range: {limits}")
    counts = rated.sum(axis=1)
    if (wrong_rows := table[:, 0] != counts).any():
        row = int(np.argmax(wrong_rows))
        _complain(file, is_xls, row, f"holds {counts[row]} ratings but its first field says {table[row, 0]:g}")
    return table


def _complain(file: File, is_xls: bool, row: int, what: str) -> NoReturn:
    """Raise an error that names a row of a sheet, or a line of a text file."""
    if is_xls:
        raise UserError(f"{file}, row {row + 1}: {what}")
    number = next(number for number, _ in islice(lines(file), row, None))
    raise UserError(f"{file}, line {number}: {what}")


def _from_csv(file: File) -> Floats:
    """The numbers of a text file without a header."""
    import pandas  # noqa: PLC0415  slow to import, and rarely needed because parsed data is cached

    with file.open() as stream:
        watched = Watched(stream)
        exactly = to_the_last_bit(pandas.__version__)
        try:
            frame = pandas.read_csv(
                io.BufferedReader(watched), header=None, dtype=np.float64, na_filter=False, **exactly
            )
        except pandas.errors.EmptyDataError:
            raise UserError(f"{file} holds no rows") from None
        except ValueError as error:  # includes pandas' own errors
            _diagnose(file)
            raise UserError(f"{file} cannot be read") from error  # pragma: no cover: the wrong line was named above
    if frame.shape[1] != _FIELDS or watched.zeros:
        _diagnose(file)
    table: Floats = frame.to_numpy()
    return table


def _diagnose(file: File) -> None:
    """Raise an error about the first line that is wrong."""
    for number, fields in records(file, ",", _FIELDS):
        if len(fields) > _FIELDS:
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {_FIELDS} are needed")
        for index, field in enumerate(fields):
            if reason := unreadable(field, "number"):
                what = f"rating of joke {index}" if index else "number of ratings"
                raise UserError(f"{file}, line {number}: {what} {field!r} {reason}")


def _from_xls(file: File) -> Floats:
    """The numbers of the first sheet of a workbook."""
    try:
        xlrd = import_module("xlrd")
    except ImportError:
        raise UserError(f"cannot read {file}: {_NO_XLRD}") from None
    content = file.read()
    try:
        sheet = xlrd.open_workbook(file_contents=content, logfile=io.StringIO()).sheet_by_index(0)
    except Exception as error:  # xlrd may raise anything on damaged files
        raise UserError(f"{file} is cut, damaged or not an .xls workbook ({error}): get the file again") from error
    if sheet.ncols != _FIELDS or sheet.nrows == 0:
        raise UserError(f"{file} holds {sheet.nrows} rows of {sheet.ncols} cells where rows of {_FIELDS} are needed")
    return np.array([_cells(file, row, sheet.row_values(row)) for row in range(sheet.nrows)])


def _cells(file: File, row: int, values: list[Any]) -> list[float]:
    """The numbers of a row; a cell that is not a number is an error that names it."""
    for index, value in enumerate(values):
        if not isinstance(value, float):
            raise UserError(f"{file}, row {row + 1}, column {index + 1}: {value!r} is no number")
    return values
