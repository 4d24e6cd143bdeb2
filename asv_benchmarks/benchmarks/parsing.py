"""Parsing text files of ratings into a view, and reading the view back from the cache."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbench.data.building import ratings
from rankbench.data.files import File, Files
from rankbench.data.parsed import parsed
from rankbench.data.tables import read
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

_ITEMS, _LARGEST_ID, _PER_USER = 26_744, 131_262, 144  # of MovieLens 20M


@dataclass(frozen=True)
class Text:
    """A text file with this number of ratings, which is part of its name."""

    rows: int
    separator: str

    @property
    def path(self) -> Path:
        """The path of the file, in the folder in which asv runs benchmarks."""
        return Path(f"{self.rows}-{'csv' if self.separator == ',' else 'dat'}.txt").resolve()

    def write(self) -> None:
        """Write rows as GroupLens does: user, movie, half stars and a time, with users and movies ascending."""
        import pandas  # noqa: PLC0415  imported late, as in `read`

        rng = np.random.default_rng(0)
        places = np.unique(rng.integers(0, (self.rows // _PER_USER + 1) * _ITEMS, self.rows + self.rows // 20))
        places = np.sort(rng.choice(places, self.rows, replace=False))
        movies = np.sort(rng.choice(_LARGEST_ID, _ITEMS, replace=False)) + 1
        columns = {
            "user": places // _ITEMS + 1,
            "movie": movies[places % _ITEMS],
            "stars": rng.integers(1, 11, self.rows) / 2,
            "time": rng.integers(789_652_009, 1_427_784_002, self.rows),
        }
        pandas.DataFrame(columns).to_csv(self.path, index=False, header=False)
        if self.separator != ",":
            self.path.write_bytes(self.path.read_bytes().replace(b",", self.separator.encode()))

    def parse(self, files: Files) -> Ratings:
        """The view of the file, parsed like the real data sets."""
        layout = Layout(separator=self.separator, scale=(0.5, 5), step=0.5)
        return ratings(read(File(files.paths[0]), layout))

    def view(self) -> Ratings:
        """The view of the file, from the cache if it was parsed before."""
        return parsed(self, 1, Files("text", (self.path,)), self.parse)


class Parsing:
    """A twentieth of MovieLens 20M; for all of it add 20_000_263 to the rows."""

    params = ((1_000_000,), (",", "::"))
    param_names = ("rows", "separator")
    timeout = 600.0
    number = 1

    def setup_cache(self) -> None:
        """Write each file once, and parse it once."""
        os.environ["RANKBENCH_CACHE"] = str(Path.cwd() / "cache")
        for rows in self.params[0]:
            for separator in self.params[1]:
                text = Text(rows, separator)
                text.write()
                text.view()

    def setup(self, rows: int, separator: str) -> None:
        """Use the files of `setup_cache`, and import pandas before the time is taken."""
        os.environ["RANKBENCH_CACHE"] = str(Path.cwd() / "cache")
        self.text = Text(rows, separator)
        self.files = Files("text", (self.text.path,))
        self.text.parse(self.files)

    def time_parse(self, rows: int, separator: str) -> None:
        """The time from text to a view, with every field checked."""
        self.text.parse(self.files)

    def peakmem_parse(self, rows: int, separator: str) -> None:
        """The largest resident size of the process."""
        self.text.parse(self.files)

    def time_reload(self, rows: int, separator: str) -> None:
        """The time to read the view from the cache."""
        self.text.view()
