"""The digest of rankbench's own source code, by which is noticed that something was made by other code."""

import hashlib
from functools import cache
from pathlib import Path

import rankbench


@cache
def source_digest(folders: tuple[str, ...] = ("",), endings: tuple[str, ...] = (".py",)) -> str:
    """The SHA-256 of the names and the content of all files with these endings in these folders of the package."""
    package, found = Path(rankbench.__file__).parent, hashlib.sha256()
    for path in sorted(path for folder in folders for path in (package / folder).rglob("*") if path.suffix in endings):
        found.update(path.relative_to(package).as_posix().encode() + b"\n" + path.read_bytes())
    return found.hexdigest()
