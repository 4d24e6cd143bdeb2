"""The exception for mistakes that a user can fix."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

OTHER_FOLDER = "choose another folder with --out"  # the remedy where results cannot be written at all
MAKE_ROOM = "make room and run the same command again"  # the remedy for a disk that is full


class UserError(ValueError):
    """A wrong name, value or file; the command line prints the error as one line and exits with code 2."""

    def __init__(self, problem: str, *, subject: str = "", remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.subject = subject
        self.remedy = remedy

    def __str__(self) -> str:
        said = f"{self.subject}: {self.problem}" if self.subject else self.problem
        return f"{said}; {self.remedy}" if self.remedy else said

    def about(self, subject: str) -> "UserError":
        """The same error with this subject in place of its own."""
        return UserError(self.problem, subject=subject, remedy=self.remedy)

    def within(self, place: str, instead_of: str = "") -> "UserError":
        """The same error with `place` put before its subject, or in place of the subject `instead_of`."""
        inner = self.subject if self.subject != instead_of else ""
        return self.about(f"{place}: {inner}" if inner else place)

    def as_option(self) -> "UserError":
        """The same error, worded for a command-line option: `--seed=-1 is out of range`."""
        return UserError(f"--{self.problem}", remedy=self.remedy)


class Unfinished(UserError):
    """A run that ends before all of its cells have run; what it has stored is kept, and the exit code is 1."""


@contextmanager
def writing_to(place: object, remedy: str) -> Iterator[None]:
    """A context in which an error of the file system becomes one line with the place and this remedy."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write to {place}: {error.strerror or error}", remedy=remedy) from None


@contextmanager
def placed(place: str, instead_of: str = "") -> Iterator[None]:
    """A context whose errors say where they are: `place` before their subject, or in place of `instead_of`."""
    try:
        yield
    except UserError as error:
        raise error.within(place, instead_of) from None


def unknown(kind: str, given: object, known: Iterable[str], remedy: str = "") -> UserError:
    """The error for a name that was given and is not among the `known` ones; it suggests the most similar one."""
    names, name = sorted(known), str(given)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(names)}"
    if all(part.strip() in names for part in name.split(",")):
        hint = "these are several: give each by itself"
    return UserError(f"unknown {kind} {name!r}", remedy=hint + (f" ({remedy})" if remedy else ""))


def refuse_unknown(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise the error for the first of these names that is not among the known ones, if there is one."""
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)


def not_stored(name: str, stored: Iterable[str], given_by: str, remedy: str) -> UserError:
    """The error for an experiment that is not in a folder of results, or for the folder itself in its place."""
    if os.path.isdir(name):
        return UserError(
            f"{name!r} is a folder, not an experiment", remedy=f"a folder of results is given by {given_by}"
        )
    return unknown("experiment in this folder of results:", name, stored, remedy)
