"""Data that is handed over in Python, a name, a path, a DataFrame or ratings, as the name of a data set."""

import csv
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbench.arrays.frames import pandas_of
from rankbench.core.errors import OTHER_FOLDER, UserError, writing_to
from rankbench.core.leftovers import replacing
from rankbench.data import DATASETS
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.data.views.layout import called
from rankbench.own_data.naming import data_named

if TYPE_CHECKING:
    import pandas

_WAYS = {  # what to do in Python in place of a setting of a file
    "missing=drop": "leave such rows out first, as with dropna()",
    "repeats=last": "keep the last of each, as with drop_duplicates()",
}
_DIGITS = 8  # of the hash in a file's name


@dataclass(frozen=True)
class Handed:
    """The name of the data set, and what it is called in messages if it was written to a file first."""

    name: str
    file: str = ""
    called: str = ""

    def worded(self, text: str) -> str:
        """A text about the file as one about what was handed over."""
        for kind in ("csv:", "pairs:", "") if self.file else ():
            text = text.replace(f"{kind}{self.file}", self.called)
        return text

    def remedied(self, text: str) -> str:
        """What to do about the file, as what to do about what was handed over."""
        ways = (way for setting, way in _WAYS.items() if self.file and setting in text)
        return next(ways, self.worded(text))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """A context in which errors about the file are about what was handed over."""
        try:
            yield
        except UserError as error:
            if not self.file:
                raise
            problem = self.worded(str(UserError(error.problem, subject=error.subject)))
            raise UserError(problem, remedy=self.remedied(error.remedy)) from None


def handed(data: Any, out: Path) -> Handed:
    """What a user has handed over; tables and views are written to CSV files in this folder, named by their content.

    Users and items of a view that have no row are not in the file.
    """
    if isinstance(data, str | Path):
        return Handed(str(data))
    if isinstance(data, Ratings | Comparisons):
        return _of_view(data, out)
    if (table := pandas_of(data)) is not None:
        path = str(_written(table, out, "frame"))
        return Handed(path, path, "the DataFrame as CSV")
    remedy = "give a DataFrame, ratings, the path of a file or the name of a data set"
    raise UserError(f"a {type(data).__name__} is no data", remedy=remedy)


def _of_view(view: View, out: Path) -> Handed:
    """A view, which is written as a table of its ids, with its item features in a second one."""
    path = str(_written(_rows(view), out, "rows"))
    kind, called = ("csv", "the ratings") if isinstance(view, Ratings) else ("pairs", "the comparisons")
    name = f"{kind}:{path}"
    if view.item_features is not None:
        features = _written(_features(view), out, "features")
        name = DATASETS.resolve(name).with_chosen((("features", str(features)),))
    return Handed(name, path, f"{called} as CSV")


def _rows(view: View) -> "pandas.DataFrame":
    """The rows of a view with the data's own ids, numbers counted from 0 if it has none."""
    import pandas  # noqa: PLC0415

    users = called(view.users, view.user_ids)
    if isinstance(view, Comparisons):
        better, worse = (called(numbers, view.item_ids) for numbers in (view.better, view.worse))
        return pandas.DataFrame({"user": users, "better": better, "worse": worse})
    table = pandas.DataFrame({"user": users, "item": called(view.items, view.item_ids), "rating": view.values})
    return table if view.times is None else table.assign(timestamp=view.times)


def _features(view: View) -> "pandas.DataFrame":
    """The item features of a view, with the item first."""
    import pandas  # noqa: PLC0415
    import scipy.sparse  # noqa: PLC0415

    block: Any = view.item_features
    numbers = block.toarray() if scipy.sparse.issparse(block) else np.asarray(block)
    names = [f"f{number + 1}" for number in range(numbers.shape[1])]
    table = pandas.DataFrame(numbers, columns=names if view.feature_names is None else view.feature_names)
    table.insert(0, "item", called(np.arange(view.n_items), view.item_ids))
    return table


def _written(table: "pandas.DataFrame", out: Path, name: str) -> Path:
    """The file in this folder that a table was written to."""
    try:
        content = table.to_csv(index=False).encode()
        if b"\r" in content:  # at which a line ends if it is not in quotes
            content = table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()
    except UnicodeEncodeError as error:
        problem = f"the data holds {error.object[error.start]!r}, with a lone surrogate, which no file can hold"
        raise UserError(problem, remedy="repair the text where it was decoded") from None
    path = out / f"{name}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.csv"
    with writing_to(out, OTHER_FOLDER):
        out.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:  # another process may be reading the same content
            partial.write_bytes(content)
    return path


def named(given: Handed) -> str:
    """The name of the data set with its kind, as an experiment takes it."""
    with given.errors():
        return data_named(given.name).written
