"""Combines the data files of `coverage run` in this folder, without those that a killed process has not finished.

Each process writes a file when it ends. Tests kill processes, and the driver kills a cell's process as soon as its last
message has come, so that some are killed while they write. Coverage would print two lines for each such file, leave it
there, and go on. This script removes them and says how many there were.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from coverage import Coverage


def main() -> None:
    """Remove the files that cannot be read, and combine the others."""
    files = sorted(Path().glob(".coverage.*"))
    damaged = [path for path in files if not is_whole(path)]
    for path in damaged:
        path.unlink()
    if damaged:
        print(f"{len(damaged)} of {len(files)} data files left out: their processes were killed while they wrote them")
    found = Coverage(messages=False)
    found.combine(strict=True)
    found.save()


def is_whole(path: Path) -> bool:
    """Whether a data file is a sound database with coverage's tables; coverage writes them without a journal."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as data:
            data.execute("SELECT * FROM coverage_schema")
            return data.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except sqlite3.DatabaseError:
        return False


if __name__ == "__main__":
    main()
