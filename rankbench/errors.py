"""The one exception for mistakes a user can mend: it names the thing, the value and the remedy."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A wrong name, value or file; the command line prints its one line and exits with 1."""


def unknown(kind: str, name: str, known: Iterable[str], remedy: str = "") -> UserError:
    """An error for `name` that is none of the `known` ones, with the nearest of them."""
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; known: {', '.join(names)}"
    return UserError(f"unknown {kind} {name!r}{hint}" + (f" ({remedy})" if remedy else ""))
