"""Reading twenty million ratings into a data set, with every field checked, compared with pandas' own readers."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas
from turns import Measure, Row, compared, per_second, seconds

from rankbench import load
from rankbench.core.system import peak_bytes

_READERS = {"csv": pandas.read_csv, "parquet": pandas.read_parquet}
_FIRST, _LAST = 789_652_009, 1_427_784_002  # the times of MovieLens 20M


def reading(repeats: int) -> Iterator[Row | Measure]:
    """From a file with times, not from the cache, and from a DataFrame; both libraries are imported before."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RANKBENCH_CACHE"] = str(Path(folder, "cache"))
        table = _table()
        files = {kind: Path(folder, f"ratings.{kind}") for kind in _READERS}
        table.to_csv(files["csv"], index=False)
        table.to_parquet(files["parquet"])
        for kind, file in files.items():
            what = f"{kind} of {len(table):,} ratings with times, {file.stat().st_size / 1e6:,.0f} MB : pandas"
            ours, theirs = (per_second(work, len(table)) for work in _works(kind, file))
            yield compared(repeats, what, "ratings/s", 1.0 if kind == "csv" else None, peer=theirs, ours=ours)
            yield from _memory(kind, file)
        yield Measure(
            f"a DataFrame of {len(table):,} ratings", "s", min(seconds(partial(load, table)) for _ in range(3))
        )


def _works(kind: str, file: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """What reads a file, ours and theirs; ours finds nothing in the cache, since the file has just been written."""

    def ours() -> object:
        os.utime(file)
        return load(f"{kind}:{file}")

    return ours, partial(_READERS[kind], file)


def _memory(kind: str, file: Path) -> Iterator[Measure]:
    """The most memory of a new process that reads the file, beside that of one that pandas reads it in."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        ours, theirs = (pool.apply(_peak, (kind, file, number)) for number in range(2))
    what = f"{kind}: most memory of the process, {ours / 1e6:,.0f} MB against {theirs / 1e6:,.0f} MB with pandas"
    yield Measure(what, "x", ours / theirs, at_most=2.5)


def _peak(kind: str, file: Path, number: int) -> float:
    """The most memory of this process, which reads the file."""
    _works(kind, file)[number]()
    return peak_bytes()


def _table() -> pandas.DataFrame:
    """The users and items of MovieLens 20M with drawn ratings and times, by user and item."""
    view, rng = load("lookalike:ml-20m"), np.random.default_rng(0)
    times = rng.integers(_FIRST, _LAST, len(view))
    columns = {"userId": view.users + 1, "movieId": view.items + 1, "rating": view.values, "timestamp": times}
    return pandas.DataFrame(columns)
