"""Reading votes: tables of comparisons or of rankings, from CSV, Parquet, JSON or a DataFrame, and PrefLib's files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankbench.core.contract import Floats, Int8s, Int32s
from rankbench.core.errors import UserError
from rankbench.data.sources.headers import plain
from rankbench.judging.sources import Source
from rankbench.leaderboards.sources import known, preflib
from rankbench.leaderboards.sources.tables import Column, Table, table_of
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE, Groups, Names, Rankings, Votes, from_rankings

_NAMES: Mapping[str, str] = {  # of columns without case and punctuation, the most telling ones first
    "left": "left leftitem modela modelx itema itemx playera teama a x item1 model1 first",
    "right": "right rightitem modelb modely itemb itemy playerb teamb b y item2 model2 second",
    "winner": "winner outcome result preference preferred choice chosen better betteritem label vote",
    "loser": "loser worse worseitem rejected",
    "judge": "judge judgeid worker workerid annotator annotatorid rater raterid evaluator user userid voter voterid "
    "respondent labeler labelerid assessor reviewer person",
    "count": "count counts frequency",
    "weight": "weight weights",
    "ranking": "ranking order ranked",
    "item": "item itemid alternative model candidate option",
    "rank": "rank position place",
}
_LEFT_WORDS = {"left", "l", "a", "x", "modela", "modelx", "first", "itema", "answera", "responsea"}
_RIGHT_WORDS = {"right", "r", "b", "y", "modelb", "modely", "second", "itemb", "answerb", "responseb"}
_TIE_WORDS = {"tie", "tied", "draw", "equal", "both", "neither", "same", "tiebothbad", "bothbad", "bothgood", "t"}
_SHAPES = (("left", "right", "winner"), ("winner", "loser"), ("ranking",), ("item", "rank"))
_WANTED = "winner and loser; left, right and winner; ranking; or judge, item and rank"
_SHOWN = 5


@dataclass(frozen=True)
class Wanted:
    """What to read beside the comparisons."""

    by: str = ""  # the column of categories
    covariates: tuple[str, ...] = ()

    def refuse(self, called: str) -> None:
        """Raise an error if something is wanted, of votes that have nothing beside."""
        for what, name in (("categories", self.by), ("covariates", ", ".join(self.covariates))):
            if name:
                raise UserError(
                    f"{called} has no {what} ({name}): they belong to a table with a row for each comparison"
                )


def votes_of(data: Any, columns: Mapping[str, str] | None = None, wanted: Wanted | None = None) -> Votes:
    """The votes in a file or table; `columns` says which column has which role, where names do not tell."""
    if isinstance(data, Votes):
        return data
    wanted = wanted or Wanted()
    if isinstance(data, str) and known.is_known(data):
        named = known.votes_of(data)
        if isinstance(named, Votes):
            wanted.refuse(data)
            return named
        data = named
    source = Source.of(data)
    given = {**source.given, **(columns or {})}
    if isinstance(source.data, Path) and source.data.suffix.lower() in preflib.ENDINGS:
        wanted.refuse(source.called)
        return preflib.votes_of(source.data)
    called = source.called if isinstance(source.data, Path) else "the table"
    return _Reader(table_of(source, called), given, wanted).votes()


@dataclass(frozen=True, eq=False)
class _Reader:
    """A table with what the user said about its columns."""

    table: Table
    given: Mapping[str, str]
    wanted: Wanted

    def votes(self) -> Votes:
        """The votes, whatever shape the table has."""
        unknown = [role for role in self.given if role not in _NAMES]
        if unknown:
            raise UserError(f"{self.table.called}: unknown setting {unknown[0]!r}",
                            remedy=f"known: {', '.join(_NAMES)}")  # fmt: skip
        roles = self._roles()
        shapes = [one for one in _SHAPES if set(one) <= set(roles)]
        if not shapes:
            raise UserError(
                f"{self.table.called} has no comparisons: its columns are {', '.join(self.table.names) or 'none'}",
                remedy=f"it needs {_WANTED}; say which column is which: FILE[winner=NAME,loser=NAME]",
            )
        if not self.table.rows:
            raise UserError(f"{self.table.called} has no rows", remedy="give it a row for each comparison")
        shape = max(shapes, key=lambda one: len(set(one) & set(self.given)))  # the first one, if columns are not given
        if shape in (("ranking",), ("item", "rank")):
            self.wanted.refuse(self.table.called)
            return self._orders(roles) if shape == ("ranking",) else self._ranks(roles)
        return self._comparisons(roles, shape)

    def _roles(self) -> dict[str, str]:
        """The column of each role that is given or found by a usual name."""
        found: dict[str, str] = {}
        for role, name in self.given.items():
            if name not in self.table.names:
                raise UserError(f"{self.table.called} has no column {name!r}",
                                remedy=f"it has {', '.join(self.table.names)}")  # fmt: skip
            found[role] = name
        named = {plain(name): name for name in reversed(self.table.names)}
        for role, names in _NAMES.items():
            free = (named[one] for one in names.split() if one in named and named[one] not in found.values())
            if role not in found and (usual := next(free, "")):
                found[role] = usual
        return found

    def _comparisons(self, roles: Mapping[str, str], shape: Sequence[str]) -> Votes:
        """The votes of a table with a row for each comparison."""
        by_side = shape[0] == "left"
        sides = [self.table.texts(roles[role], role) for role in (("left", "right") if by_side else shape)]
        for side in sides:
            self._check_known(side)
        items, (left, right) = _together(sides)
        self._check_apart(items, left, right)
        outcome = np.zeros(self.table.rows, np.int8)
        if by_side:
            outcome = self._outcomes(self.table.texts(roles["winner"], "winner"), items, left, right, roles)
        ones = np.ones(self.table.rows)
        votes = Votes(items, left, right, outcome, ones, ones, self._judges(roles), ordered=by_side)
        return self._measured(votes, roles)

    def _measured(self, votes: Votes, roles: Mapping[str, str]) -> Votes:
        """The votes with their counts, weights, covariates and categories."""
        amounts = {role: self._positive(roles[role], role) for role in ("count", "weight") if role in roles}
        kept = np.ones(len(votes), bool)
        for values in amounts.values():
            kept &= values > 0
        if not kept.any():
            raise UserError(f"{self.table.called} has no row that counts: each has {' or '.join(amounts)} 0")
        covariates = [self._covariate(name, roles) for name in self.wanted.covariates]
        categories = None
        if self.wanted.by:
            categories = self._groups(self.table.texts(self.wanted.by, "category"))
        whole = replace(
            votes,
            counts=amounts.get("count", votes.counts),
            weights=amounts.get("weight", votes.weights),
            covariates=np.column_stack(covariates) if covariates else None,
            covariate_names=self.wanted.covariates,
            categories=categories,
        )
        return whole if kept.all() else whole.where(kept)

    def _judges(self, roles: Mapping[str, str]) -> Groups | None:
        return self._groups(self.table.texts(roles["judge"], "judge")) if "judge" in roles else None

    def _groups(self, column: Column) -> Groups:
        self._check_known(column)
        return Groups(column.names, column.codes)

    def _check_known(self, column: Column) -> None:
        """Refuse rows without a name."""
        if (column.codes < 0).any() or "" in column.names:
            missing = (column.codes < 0) | np.append(column.names == "", True)[column.codes]
            raise UserError(
                f"{self.table.place(int(missing.argmax()))}: the {column.role} is missing",
                remedy=f"leave these rows out: {int(missing.sum()):,} of {self.table.rows:,} have none",
            )

    def _check_apart(self, items: Names, left: Int32s, right: Int32s) -> None:
        """Refuse an item against itself, which says nothing."""
        if (same := left == right).any():
            row = int(same.argmax())
            raise UserError(
                f"{self.table.place(row)}: {items[left[row]]!r} is compared with itself",
                remedy=f"leave these rows out: there are {int(same.sum()):,}",
            )

    def _positive(self, name: str, role: str) -> Floats:
        """A column of counts or weights."""
        values = self.table.numbers(name)
        bad = ~(np.isfinite(values) & (values >= 0))
        if role == "count":
            bad |= values != np.floor(values)
        if bad.any():
            needed = "a whole number from 0 on" if role == "count" else "a number from 0 on"
            raise UserError(f"{self.table.place(int(bad.argmax()))}: the {role} is not {needed}")
        return values

    def _covariate(self, name: str, roles: Mapping[str, str]) -> Floats:
        """A property's difference between the sides, in standard deviations."""
        if name in self.table.names:
            values = self.table.numbers(name)
        elif both := next(filter(None, (self._both(name, ends) for ends in _ends(roles))), None):
            values = self.table.numbers(both[0]) - self.table.numbers(both[1])
        else:
            pairs = " nor ".join(f"{name}_{one} and {name}_{other}" for one, other in _ends(roles))
            raise UserError(
                f"{self.table.called} has neither a column {name!r} nor {pairs}",
                remedy=f"it has {', '.join(self.table.names)}",
            )
        if not np.isfinite(values).all():
            raise UserError(f"{self.table.place(int((~np.isfinite(values)).argmax()))}: {name} is no number")
        spread = values.std()
        if spread == 0:
            raise UserError(f"{self.table.called}: {name} is {values[0]:g} in all rows, which explains nothing")
        scaled: Floats = values / spread
        return scaled

    def _both(self, name: str, ends: tuple[str, str]) -> tuple[str, str] | None:
        """The columns that hold a property of the first and of the second side under these ends, if both are there."""
        known = {plain(one): one for one in reversed(self.table.names)}
        one, other = (known.get(plain(f"{name}_{end}")) for end in ends)
        return (one, other) if one and other else None

    def _outcomes(self, column: Column, items: Names, left: Int32s, right: Int32s, roles: Mapping[str, str]) -> Int8s:
        """What came of each comparison, from words, numbers or the names of items."""
        self._check_known(column)
        by_word = _meanings(column.names, roles)[column.codes]
        place = {name: number for number, name in enumerate(items)}
        winners = np.array([place.get(name, -1) for name in column.names])
        if (winners < 0).all():
            self._check_outcomes(column, by_word)
            return by_word
        own = winners[column.codes]
        tied = (own < 0) & (by_word == TIE)
        by_name = np.select([own == left, own == right, tied], [LEFT, RIGHT, TIE], -1).astype(np.int8)
        fits = bool((by_name >= 0).all()), bool((by_word >= 0).all())
        if fits[0] != fits[1]:
            return by_name if fits[0] else by_word
        if (twofold := (by_name >= 0) & (by_word >= 0) & (by_name != by_word)).any():
            row = int(twofold.argmax())
            raise UserError(
                f"{self.table.place(row)}: the winner {str(column.names[column.codes[row]])!r} may be the name of an "
                "item or that of a side",
                remedy="write left, right and tie, or call the items otherwise",
            )
        found: Int8s = np.where(by_name >= 0, by_name, by_word)
        self._check_outcomes(column, found)
        return found

    def _check_outcomes(self, column: Column, found: Int8s) -> None:
        bad = found < 0
        if bad.any():
            row = int(bad.argmax())
            seen = [repr(str(name)) for name in column.names[np.unique(column.codes[bad])][:_SHOWN]]
            raise UserError(
                f"{self.table.place(row)}: the winner is {', '.join(seen)}, which is neither side, nor one of "
                f"the words left, right and tie ({int(bad.sum()):,} of {self.table.rows:,} rows)",
                remedy="write left, right or tie, or the winner's name as it stands in its column",
            )

    def _orders(self, roles: Mapping[str, str]) -> Votes:
        """The votes of a table with a ranking in each row, which counts as often as the column of counts says."""
        self._refuse_amounts(roles, "weight")
        column, judges = self.table.texts(roles["ranking"], "ranking"), self._judges(roles)
        self._check_known(column)
        orders = [preflib.order_of_text(str(name)) for name in column.names]
        rows = np.arange(self.table.rows)
        if "count" in roles:
            rows = np.repeat(rows, self._positive(roles["count"], "count").astype(np.int64))
        repeated = None if judges is None else Groups(judges.names, judges.codes[rows])
        given = [orders[code] for code in column.codes[rows]]
        return preflib.votes_of_orders(given, lambda ranking: self.table.place(int(rows[ranking])), repeated)

    def _refuse_amounts(self, roles: Mapping[str, str], *amounts: str) -> None:
        """Raise an error if rankings have a column of amounts that would be passed over."""
        for role in amounts:
            if role in roles:
                raise UserError(f"{self.table.called}: rankings have no {role} (column {roles[role]!r})",
                                remedy="leave the column out")  # fmt: skip

    def _ranks(self, roles: Mapping[str, str]) -> Votes:
        """The votes of a table with a row for each item of a judge's ranking."""
        self._refuse_amounts(roles, "count", "weight")
        if "judge" not in roles:
            raise UserError(f"{self.table.called} has ranks of items, and no column says whose ranking they belong to",
                            remedy="name it: FILE[judge=NAME]")  # fmt: skip
        items, judges = (self.table.texts(roles[role], role) for role in ("item", "judge"))
        self._check_known(items)
        owners, ranks = self._groups(judges), self.table.numbers(roles["rank"])
        if not np.isfinite(ranks).all():
            raise UserError(f"{self.table.place(int((~np.isfinite(ranks)).argmax()))}: the rank is no number")
        order = np.lexsort((ranks, owners.codes))
        self._check_once(items, owners, order)
        starts = np.concatenate([[0], np.cumsum(owners.sizes)])
        own = Groups(owners.names, np.arange(len(owners.names), dtype=np.int32))
        _, levels = np.unique(ranks[order], return_inverse=True)
        return from_rankings(items.names, Rankings(starts, items.codes[order]), levels.astype(np.int32), own)

    def _check_once(self, items: Column, owners: Groups, order: Any) -> None:
        """Refuse an item that stands twice in a ranking."""
        keys = owners.codes * np.int64(len(items.names)) + items.codes
        ordered = np.argsort(keys, kind="stable")
        twice = np.flatnonzero(np.diff(keys[ordered]) == 0)
        if len(twice):
            row = int(ordered[twice[0] + 1])
            name, judge = items.names[items.codes[row]], owners.names[owners.codes[row]]
            raise UserError(f"{self.table.place(row)}: {name!r} stands twice in the ranking of {judge!r}")


def _ends(roles: Mapping[str, str]) -> list[tuple[str, str]]:
    """The ends of the names of columns that hold a property of each side, those of the columns of items first."""
    if "left" not in roles:
        return [("winner", "loser")]
    usual = [("left", "right"), ("a", "b"), ("x", "y"), ("1", "2")]
    left = plain(roles["left"])
    own = [ends for ends in usual if left.endswith(ends[0])][:1]
    return list(dict.fromkeys([*own, usual[0]]))


def _meanings(names: Names, roles: Mapping[str, str]) -> Int8s:
    """The outcome that each distinct value of the winner's column stands for, or -1."""
    words = {**dict.fromkeys(_LEFT_WORDS, LEFT), **dict.fromkeys(_RIGHT_WORDS, RIGHT), **dict.fromkeys(_TIE_WORDS, TIE)}
    words |= {plain(roles["left"]): LEFT, plain(roles["right"]): RIGHT}
    numbers = _as_numbers(names)
    if numbers is not None:
        return numbers
    return np.array([words.get(plain(str(name)), -1) for name in names], np.int8)


def _as_numbers(names: Names) -> Int8s | None:
    """The outcomes if all values are numbers: 1, 2 and 0 for a tie, or the left item's score or sign."""
    try:
        values = np.array([float(name) for name in names])
    except ValueError:
        return None
    seen = set(values)
    for meant in (
        {1.0: LEFT, 2.0: RIGHT, 0.0: TIE},
        {1.0: LEFT, 0.0: RIGHT, 0.5: TIE},
        {1.0: LEFT, -1.0: RIGHT, 0.0: TIE},
    ):
        if seen <= set(meant) and (2.0 in seen or 2.0 not in meant):
            return np.array([meant[value] for value in values], np.int8)
    return np.full(len(values), -1, np.int8)


def _together(columns: Sequence[Column]) -> tuple[Names, list[Int32s]]:
    """The names that occur in any of the columns, in the order of the alphabet, and their numbers in each."""
    names = np.array(sorted({str(name) for column in columns for name in column.names}), object)
    place = {name: number for number, name in enumerate(names)}
    return names, [np.array([place[str(name)] for name in column.names], np.int32)[column.codes] for column in columns]
