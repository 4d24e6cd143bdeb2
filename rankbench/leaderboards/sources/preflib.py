"""Rankings as texts: PrefLib's files of orders (soc, soi, toc, toi), and orders such as `a > b = c`."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rankbench.core.errors import UserError
from rankbench.judging.text_files import opened
from rankbench.leaderboards.votes import Groups, Rankings, Votes, from_rankings

ENDINGS = (".soc", ".soi", ".toc", ".toi")
Order = list[list[str]]  # the items of each level, the best first
_NAME = re.compile(r"#\s*ALTERNATIVE NAME (\d+)\s*:\s*(.*)")
_ORDER = re.compile(r"\s*(\d+)\s*[:,]\s*(.+)")
_LEVEL = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
_MOST = 10_000_000  # rankings of a file


def order_of_text(text: str) -> Order:
    """The order in a text such as `a > b = c`: `>` is better than, and `=` or `~` equal to."""
    return [[item.strip() for item in re.split(r"[=~]", level) if item.strip()] for level in text.split(">")]


def votes_of_orders(orders: Sequence[Order], place: Callable[[int], str], judges: Groups | None = None) -> Votes:
    """The votes of orders; `place` says in messages where the one with a number is."""
    levels = [level for order in orders for level in order]
    for number, order in enumerate(orders):
        flat = [item for level in order for item in level]
        if not all(order):
            raise UserError(f"{place(number)}: a place in the ranking is empty")
        if len(set(flat)) < len(flat):
            twice = next(item for item in flat if flat.count(item) > 1)
            raise UserError(f"{place(number)}: {twice!r} stands twice in the ranking")
    if not any(len(order) > 1 or len(order[0]) > 1 for order in orders):
        raise UserError("no ranking has two items, so that nothing is compared")
    names = np.array(sorted({item for level in levels for item in level}), object)
    known = {name: number for number, name in enumerate(names)}
    sizes = np.array([sum(map(len, order)) for order in orders])
    members = np.array([known[item] for level in levels for item in level], np.int32)
    ranks = np.repeat(np.arange(len(levels), dtype=np.int32), list(map(len, levels)))
    return from_rankings(names, Rankings(np.concatenate([[0], np.cumsum(sizes)]), members), ranks, judges)


def votes_of(path: Path) -> Votes:
    """The votes of a file of PrefLib, in its present form or the one before; an order given n times is n rankings."""
    with opened(path) as stream:
        try:
            lines = [line.decode("utf-8-sig").strip() for line in stream]
        except (UnicodeDecodeError, OSError) as error:
            raise UserError(f"{path} is no text: {error}") from None
    names, start = _names(path, lines)
    orders: list[Order] = []
    places: list[int] = []
    for number, line in enumerate(lines[start:], start + 1):
        if not line or line.startswith("#"):
            continue
        found = _ORDER.fullmatch(line)
        if not found or _LEVEL.sub("", found[2]).strip(", "):  # a brace that is not closed, say
            raise UserError(f"{path}, line {number} is no order of PrefLib: {line[:60]!r}", remedy="count: 1,2,{3,4}")
        order = [_level(path, number, names, *pair) for pair in _LEVEL.findall(found[2])]
        if len(orders) + int(found[1]) > _MOST:
            raise UserError(f"{path} has over {_MOST:,} rankings")
        orders += [order] * int(found[1])
        places += [number] * int(found[1])
    if not orders:
        raise UserError(f"{path} has no orders")
    return votes_of_orders(orders, lambda ranking: f"{path}, line {places[ranking]}")


def _names(path: Path, lines: list[str]) -> tuple[dict[str, str], int]:
    """The names of the alternatives by number, and the line after which the orders begin."""
    if any(line.startswith("#") for line in lines):
        return {match[1]: match[2] for line in lines if (match := _NAME.fullmatch(line))}, 0
    try:
        size = int(lines[0])
        names = dict(line.split(",", 1) for line in lines[1 : size + 1])
    except (IndexError, ValueError):
        remedy = "it begins with lines of `# ALTERNATIVE NAME 1: ...`, or with the number of alternatives"
        raise UserError(f"{path} is no file of PrefLib", remedy=remedy) from None
    return {number.strip(): name.strip() for number, name in names.items()}, size + 2


def _level(path: Path, line: int, names: dict[str, str], tied: str, single: str) -> list[str]:
    """The names of the alternatives of a level."""
    found = [number.strip() for number in (tied or single).split(",") if number.strip()]
    for number in found:
        if number not in names:
            raise UserError(f"{path}, line {line}: there is no alternative {number!r}")
    return [names[number] for number in found]
