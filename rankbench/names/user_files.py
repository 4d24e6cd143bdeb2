"""Loading classes from a user's own Python files, and identifying files by their content."""

import hashlib
import importlib.util
import os
import sys
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NoReturn

from rankbench.core.errors import UserError, unknown
from rankbench.core.regular import opened
from rankbench.core.texts import error_text

PREFIX = "rankbench_user_"  # of the names of the modules that users' files become
DIGITS = 16  # how many digits of a SHA-256 an identity contains


def is_from_file(name: str) -> bool:
    """Whether a name refers to a class in a Python file: `path/to/file.py:Class`."""
    return ".py:" in name


def without_folder(name: str) -> str:
    """The name without the folder of its file: `mine.py:Mine`, `csv:ratings.csv`; other names are unchanged."""
    if is_from_file(name):
        return name.rsplit("/", 1)[-1]
    key, colon, argument = name.partition(":")
    return f"{key}{colon}{argument.rsplit('/', 1)[-1]}"


def own_path(text: str) -> Path:
    """The path of a user's file, which may begin with ~."""
    return Path(os.path.expanduser(text))  # unlike pathlib's, it leaves a ~ of nobody as it is


def is_file(path: Path) -> bool:
    """Whether there is a file at this path, which may be no possible path at all."""
    return os.path.isfile(path)  # unlike pathlib's, it is False for a name that is too long


def digest_of(path: Path) -> str:
    """The first digits of the SHA-256 of a file's content."""
    try:
        about = path.stat()
        return _digest(str(path.resolve()), about.st_size, about.st_mtime_ns)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


@lru_cache(maxsize=256)
def _digest(path: str, size: int, changed: int) -> str:
    """The digest of a file; its size and time of change are parameters so that the cache notices edits."""
    with opened(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]


def class_from_file(name: str, kind: str) -> type:
    """The class `path/to/file.py:Class`; the file is imported again only if its content has changed."""
    path, _, attribute = name.rpartition(":")
    file = Path(path).resolve()
    if not is_file(file):
        raise UserError(f"no file {path!r} to take the {kind} {attribute!r} from")
    module = f"{PREFIX}{file.stem}_{digest_of(file)}"
    if module not in sys.modules:
        _run(file, path, module)
    found = vars(sys.modules[module])
    if attribute not in found:
        classes = [name for name, value in found.items() if getattr(value, "__module__", "") == module]
        raise _absent(kind, path, attribute, [name for name in classes if isinstance(found[name], type)])
    return found[attribute]  # type: ignore[no-any-return]


def _absent(kind: str, path: str, attribute: str, classes: list[str]) -> UserError:
    """The error for a name that a file does not define, where it defines these classes."""
    if not classes:
        remedy = f"a {kind} is a frozen dataclass, named like {path}:MyClass"
        return UserError(f"{path} defines no class, so there is no {kind} {attribute!r} in it", remedy=remedy)
    return unknown(f"{kind} in {path}:", attribute, classes)


class _FromSource(SourceFileLoader):
    """Runs the file as it is now: bytecode would be taken for current after an edit of equal length within a second."""

    def path_stats(self, path: object) -> NoReturn:
        """What bytecode would be compared with; without it none is read or written."""
        raise OSError(f"{path} has no bytecode")


def _run(file: Path, path: str, name: str) -> None:
    """Import a file as a module of this name."""
    spec = importlib.util.spec_from_file_location(name, file, loader=_FromSource(name, str(file)))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise UserError(f"cannot import {path}: {error_text(error)}") from error
