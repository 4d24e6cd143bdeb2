"""Ratings and comparisons from tables in memory: a pandas DataFrame, or a sparse matrix of users x items."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import Array
from rankbench.core.contract import Floats, Int64s
from rankbench.core.errors import UserError, unknown
from rankbench.data.building import Repeats, comparisons, of_columns
from rankbench.data.sources.headers import chosen_in, found_in, named, shown
from rankbench.data.tables.fields import Ids, unreadable
from rankbench.data.tables.times import as_times, kind_of, settled, unread, whole
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.features.matrix import canonical

if TYPE_CHECKING:
    import pandas

_REAL = "make it real numbers"
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # of Python, as pandas calls them
_RATED, _COMPARED, _TIME = ("user", "item", "rating"), ("user", "better", "worse"), "timestamp"


def from_frame(table: "pandas.DataFrame", columns: Mapping[str, str], repeats: Repeats = "error") -> View:
    """The ratings or comparisons in a table; `columns` says which is which: role -> name of a column."""
    for role in columns:
        if role not in (*_RATED, *_COMPARED, _TIME):
            raise unknown("role of a column", role, {*_RATED, *_COMPARED, _TIME})
    if not len(table):
        raise UserError("the table has no rows", remedy="check how it was made")
    header = [str(name) for name in table.columns]
    compared = {"better", "worse"} & columns.keys() or (not columns and found_in(header, _COMPARED))
    roles = _COMPARED if compared else _RATED
    asked = {role: _called(table, name) for role, name in columns.items()}
    named_ones = {role: name for role, name in asked.items() if role != _TIME}
    places = chosen_in(header, roles, named_ones) if named_ones else found_in(header, roles)
    if places is None:
        raise _unclear(header, roles)
    parts = {role: table.iloc[:, place] for role, place in zip(roles, places, strict=True)}
    if compared:
        return _comparisons(*(_ids(column, role) for role, column in parts.items()))
    timed = chosen_in(header, (_TIME,), asked) if _TIME in columns else named(header, _TIME)
    times = _times(table.iloc[:, timed[0]], _TIME in columns) if len(timed) == 1 else None
    return _ratings(parts, times, repeats)


def _called(table: "pandas.DataFrame", name: object) -> str:
    """The number of the column with this name, counted from 1, since names may be numbers; else the name as text."""
    labels: list[Any] = table.columns.tolist()
    return str(labels.index(name) + 1) if labels.count(name) == 1 else str(name)


def with_features(view: View, table: Any) -> View:
    """The view with the item features in a table, whose index has the ids of the items; other items are left out."""
    import pandas  # noqa: PLC0415

    if not isinstance(table, pandas.DataFrame):
        remedy = "pass a pandas DataFrame with the ids of the items as its index"
        raise UserError(f"the features are a {type(table).__name__}", remedy=remedy)
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise UserError(f"item {twice!r} has two rows of features", remedy="keep one of them")
    places = table.index.get_indexer(pandas.Index(view.item_ids))
    if (absent := places < 0).any():
        item = view.item_ids[absent].tolist()[0]
        remedy = "add it, or make the ids of the items the index: features.set_index(...)"
        raise UserError(f"the features have no row for item {item!r}", remedy=remedy)
    if wrong := [name for name in table.columns if not pandas.api.types.is_numeric_dtype(table[name].dtype)]:
        remedy = "make it numbers: pandas.get_dummies(features)"
        raise UserError(f"the feature {wrong[0]!r} is of type {table[wrong[0]].dtype}", remedy=remedy)
    if wrong := [name for name in table.columns if pandas.api.types.is_complex_dtype(table[name].dtype)]:
        raise UserError(f"the feature {wrong[0]!r} is of type {table[wrong[0]].dtype}", remedy=_REAL)
    names = np.array([str(name) for name in table.columns])
    return replace(view, item_features=table.to_numpy(np.float64)[places], feature_names=names)


def from_matrix(matrix: Any) -> Ratings:
    """The ratings in a sparse matrix with a row for each user and a column for each item; stored zeros are ratings."""
    if matrix.ndim != 2:
        remedy = "give it a row for each user and a column for each item"
        raise UserError(f"the matrix is of shape {matrix.shape}", remedy=remedy)
    rows = canonical(scipy.sparse.csr_array(matrix))
    if rows.dtype.kind not in "biuf":
        raise UserError(f"the ratings in the matrix are of type {rows.dtype}", remedy=_REAL)
    return Ratings(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64), rows.shape[1]
    )


def _unclear(header: list[str], roles: tuple[str, ...]) -> UserError:
    """The error for columns that do not say what they are."""
    problem = f"the columns {shown(header)} do not say which is which of {', '.join(roles)}"
    if named(header, "user") and named(header, "item") and not named(header, "rating"):
        return UserError(problem, remedy="for items without ratings pass table.assign(rating=1)")
    return UserError(problem, remedy=f"name them: load(table, {', '.join(f'{role}=...' for role in roles)})")


def _ratings(parts: "Mapping[str, pandas.Series[Any]]", times: Int64s | None, repeats: Repeats) -> Ratings:
    def refuse(first: int, second: int) -> NoReturn:
        pair = ", ".join(f"{role} {parts[role].iloc[[second]].tolist()[0]!r}" for role in ("user", "item"))
        problem = f"row {second}: {pair} is in an earlier row too"
        raise UserError(problem, remedy='pass repeats="last" to keep the last one')

    values, users, items = _values(parts["rating"]), _ids(parts["user"], "user"), _ids(parts["item"], "item")
    return of_columns(users, items, values, times, refuse if repeats == "error" else None)


def _comparisons(users: Ids, better: Ids, worse: Ids) -> Comparisons:
    if better.dtype.kind != worse.dtype.kind:
        raise UserError("better and worse hold texts and numbers", remedy="give both columns the same type")
    return comparisons(users, better, worse)


def _ids(column: "pandas.Series[Any]", role: str) -> Ids:
    """The ids in a column, whole numbers or texts."""
    from pandas.api import types  # noqa: PLC0415

    _refuse_missing(column, role)
    if isinstance(column.dtype, types.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if types.is_object_dtype(column.dtype) and types.infer_dtype(column) == "integer":  # whole numbers of Python
        with suppress(OverflowError):
            column = column.astype(np.int64)
    if types.is_integer_dtype(column.dtype):
        if reason := unreadable(str(column.max()), "id"):
            problem = f"row {column.argmax()}: the {role} {column.max()} {reason}"
            raise UserError(problem, remedy=f"make it a text: {_as(column, 'str')}")
        return column.to_numpy(np.int64)
    values = column.to_numpy(object)
    if not all(isinstance(value, str) for value in values):
        if types.is_float_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
            raise UserError(
                f"the {role} is of type {column.dtype}", remedy=f"make it whole numbers: {_as(column, 'int')}"
            )
        wrong = next(value for value in values if not isinstance(value, str))
        problem = f"the {role} holds a {type(wrong).__name__}, such as {wrong!r:.60}"
        raise UserError(problem, remedy=f"ids are whole numbers or texts: {_as(column, 'str')}")
    for row, text in enumerate(values):
        if reason := unreadable(text, "text"):
            raise UserError(f"row {row}: the {role} {text[:60]!r} {reason}", remedy="drop the row, or give it an id")
    return values.astype(np.str_)


def _values(column: "pandas.Series[Any]") -> Floats:
    """The ratings in a column."""
    from pandas.api import types  # noqa: PLC0415

    _refuse_missing(column, "rating")
    of_numbers = types.is_object_dtype(column.dtype) and types.infer_dtype(column) in _NUMBERS
    if not (types.is_numeric_dtype(column.dtype) or of_numbers):
        raise UserError(f"the rating is of type {column.dtype}", remedy=f"make it numbers: {_as(column, 'float')}")
    if types.is_complex_dtype(column.dtype):
        raise UserError(f"the rating is of type {column.dtype}", remedy=_REAL)
    return column.to_numpy(np.float64)


def _times(column: "pandas.Series[Any]", asked: bool) -> Int64s | None:
    """Times as whole numbers, of dates the microseconds since 1970; None if they are neither, unless asked for."""
    import pandas  # noqa: PLC0415

    try:
        if column.isna().any():
            raise ValueError("a time is missing")
        if pandas.api.types.is_integer_dtype(column.dtype) and column.max() <= np.iinfo(np.int64).max:
            return column.to_numpy(np.int64)
        if pandas.api.types.is_float_dtype(column.dtype):
            return whole(column.to_numpy(np.float64))
        if pandas.api.types.is_numeric_dtype(column.dtype):
            raise ValueError("numbers that are no times")
        if texts := _texts_in(column):
            return settled(as_times(np.array(texts), kind_of(texts[0])))
        dates = pandas.to_datetime(column, utc=True, format="ISO8601").dt.tz_localize(None)
        if dates.isna().any():
            raise ValueError("a time is missing")
        return dates.to_numpy("datetime64[us]").astype(np.int64)
    except (ValueError, TypeError, OverflowError):
        if not asked:
            return None
    remedy = f"convert it: pandas.to_datetime(table[{column.name!r}])"
    if texts := _texts_in(column):
        place, why = unread(texts, kind_of(texts[0]))
        raise UserError(f"row {place}: {why}", remedy=remedy)
    problem = f"the timestamp of type {column.dtype} is neither whole numbers nor dates, or one is missing"
    raise UserError(problem, remedy=remedy)


def _texts_in(column: "pandas.Series[Any]") -> list[str]:
    """The values of a column if all of them are texts, else none."""
    values: list[Any] = column.tolist() if column.dtype.kind == "O" else []
    return values if all(isinstance(value, str) for value in values) else []


def _refuse_missing(column: "pandas.Series[Any]", role: str) -> None:
    """Raise an error if a value of the column is missing."""
    missing: Array = column.isna().to_numpy()
    if missing.any():
        remedy = f"drop such rows: table.dropna(subset=[{column.name!r}])"
        raise UserError(f"row {int(np.argmax(missing))}: the {role} is missing", remedy=remedy)


def _as(column: "pandas.Series[Any]", kind: str) -> str:
    """The text of a conversion of a column."""
    return f"table[{column.name!r}].astype({kind})"
