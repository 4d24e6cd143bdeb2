"""The header of a user's own file: which column is the user, the item, the rating and so on, by the usual names."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rankbench.core.errors import UserError

_ITEMS = (
    "item itemid movie movieid film filmid book bookid isbn product productid asin parentasin article articleid song "
    "songid track trackid artist artistid album albumid business businessid game gameid joke jokeid anime animeid "
    "recipe recipeid lecturer lecturerid"
)
USUAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        role: frozenset(names.split())
        for role, names in {
            "user": "user userid uid username reviewer reviewerid rater raterid customer customerid member memberid "
            "person personid student studentid judge judgeid voter voterid visitor visitorid",
            "item": _ITEMS,
            "rating": "rating ratings ratingvalue rate score scores stars star value vote overall bookrating grade",
            "better": "better betteritem betterid winner winnerid preferred chosen",
            "worse": "worse worseitem worseid loser loserid rejected",
            "timestamp": "timestamp time date datetime ts unixtime reviewtime unixreviewtime created createdat",
        }.items()
    }
)
_SHOWN = 200  # letters of a header that an error shows


def plain(name: str) -> str:
    """A column's name without case, blanks, quotes and punctuation: `userid` for `User-ID`."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def named(header: Sequence[str], role: str) -> list[int]:
    """The columns whose names are usual ones for this role."""
    return [index for index, name in enumerate(header) if plain(name) in USUAL[role]]


def found_in(header: Sequence[str], roles: Sequence[str]) -> tuple[int, ...] | None:
    """The column of every role if each role has exactly one column with a usual name, else None."""
    columns = [named(header, role) for role in roles]
    return tuple(column[0] for column in columns) if all(len(column) == 1 for column in columns) else None


def chosen_in(header: Sequence[str], roles: Sequence[str], asked: Mapping[str, str]) -> tuple[int, ...]:
    """The column of every role: the asked one where a name or number is given, else the one with a usual name."""
    fields = {role: _column(header, role, asked[role]) for role in roles if role in asked}
    for role in roles:
        if role not in fields:
            free = [index for index in named(header, role) if index not in fields.values()]
            if len(free) != 1:
                which = "no column" if not free else f"{len(free)} columns"
                raise UserError(f"{which} for the {role} in {shown(header)}: name it too, {role}=NAME")
            fields[role] = free[0]
    if len(set(fields.values())) < len(fields):
        raise UserError(f"{', '.join(roles)} must be different columns of {shown(header)}")
    return tuple(fields[role] for role in roles)


def shown(header: Sequence[str]) -> str:
    """The names of a header as text for an error."""
    text = ", ".join(map(repr, header))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _column(header: Sequence[str], role: str, asked: str) -> int:
    """The column with this number, counted from 1, or with this name."""
    if asked.isascii() and asked.isdecimal() and 0 < int(asked[:9]) <= len(header):
        return int(asked[:9]) - 1
    names = [name.strip().strip('"') for name in header]
    for same in (names, [name.casefold() for name in names]):
        found = [index for index, name in enumerate(same) if name in (asked, asked.casefold())]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{role}={asked}: {len(found)} columns of {shown(header)} have this name")
    raise UserError(f"{role}={asked}: no column of {shown(header)} has this name or number")
