"""The one exception for mistakes that a user can mend: what it is about, what is wrong, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A wrong name, value or file; the command line prints it as one line and exits with 1."""

    def __init__(self, problem: str, *, subject: str = "", remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.subject = subject
        self.remedy = remedy

    def __str__(self) -> str:
        said = f"{self.subject}: {self.problem}" if self.subject else self.problem
        return f"{said}; {self.remedy}" if self.remedy else said

    def about(self, subject: str) -> "UserError":
        """The same problem, said of this subject instead."""
        return UserError(self.problem, subject=subject, remedy=self.remedy)

    def within(self, place: str, instead_of: str = "") -> "UserError":
        """The same problem with the place it was found in before its subject, or instead of that subject."""
        inner = self.subject if self.subject != instead_of else ""
        return self.about(f"{place}: {inner}" if inner else place)

    def as_option(self) -> "UserError":
        """The same problem of a setting, said of the option that sets it: `--seed=-1 is out of range`."""
        return UserError(f"--{self.problem}", remedy=self.remedy)


def unknown(kind: str, name: str, known: Iterable[str], remedy: str = "") -> UserError:
    """An error for `name` that is none of the `known` ones, with the nearest of them."""
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(names)}"
    return UserError(f"unknown {kind} {name!r}", remedy=hint + (f" ({remedy})" if remedy else ""))
