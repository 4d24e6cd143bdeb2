"""Loading from Python: data by name, tables that are in memory already, and saved models."""

import os
from pathlib import Path
from typing import Any, Literal

import scipy.sparse

from rankbench import data, fitted
from rankbench.arrays.frames import pandas_of
from rankbench.core.errors import UserError
from rankbench.core.streams import RNG, seed_of
from rankbench.data.export import read_back
from rankbench.data.frames import from_frame, from_matrix, with_features
from rankbench.own_data.naming import data_named

_TABLES = {".csv", ".tsv", ".txt", ".dat", *data.COLUMNAR}  # how the names of tables end


def load(
    what: Any,
    *,
    seed: int = 0,
    rng: RNG = None,
    repetition: int = 0,
    repeats: Literal["error", "last"] = "error",
    features: Any = None,
    **columns: str,
) -> Any:
    """Load data, a saved model or an exported split: `load("ml-100k")`, `load("ratings.csv")`, `load("model.npz")`.

    Parameters
    ----------
    what : str, Path, DataFrame or sparse matrix
        The name of a data set, perhaps with settings; the path of a table, of a model's file, or of a folder that
        `rankbench data export` wrote; a table in memory, of pandas,
        Polars or Arrow; or a sparse matrix with users as rows and items as columns.
    seed : int
        Decides the random numbers of generated data; no other data depends on it.
    rng : int or numpy.random.Generator, optional
        Another name of `seed`, which may also be a generator.
    repetition : int
        Which of several draws of generated data, counted from 0.
    repeats : {"error", "last"}
        If a user and an item come together twice in a DataFrame: an error, or keep the last row.
    features : pandas.DataFrame, optional
        Numbers with the items' ids as index, for a DataFrame.
    **columns
        The columns of a DataFrame with unusual names: `user="who", item="film", rating="points"`.

    Returns
    -------
    Ratings, Comparisons, Fitted or Split
        Ratings or comparisons of a table, as its columns say.
    """
    is_named, is_matrix = isinstance(what, str | Path), scipy.sparse.issparse(what)
    if (is_named or is_matrix) and (columns or features is not None):
        in_name = 'for a file write it into the name: load("csv:PATH[user=who,features=FILE]")'
        remedy = in_name if is_named else "the rows of a matrix are users, and its columns items"
        raise UserError(f"{next(iter(columns), 'features')}= belongs to a DataFrame", remedy=remedy)
    if is_named:
        text = str(what)
        if text.endswith(".npz"):
            return fitted.load(text)
        if os.path.isfile(Path(text) / "split.json"):
            return read_back(Path(text))
        return data.load(_name_of(text), seed_of(seed, rng), repetition)
    if is_matrix:
        return from_matrix(what)
    if (table := pandas_of(what)) is not None:
        view = from_frame(table, columns, repeats)
        return view if features is None else with_features(view, features)
    problem = f"a {type(what).__name__} cannot be loaded"
    raise UserError(problem, remedy="pass a name, a path, a DataFrame (of pandas, Polars or Arrow) or a sparse matrix")


def _name_of(text: str) -> str:
    """The name of the data set that a text means, which may be the path of a table."""
    suffix = Path(text.removesuffix(".gz")).suffix.lower()
    if suffix in _TABLES and os.path.isfile(text):
        return data_named(text).written
    if suffix in _TABLES and ":" not in text:
        raise UserError(f"there is no file {text!r}", remedy="check the path")
    return text
