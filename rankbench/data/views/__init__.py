"""The two data types that solvers learn from: ratings and comparisons in CSR form by user, immutable and validated."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbench.arrays.npz import LARGEST, Arrays, sealed, unpack
from rankbench.arrays.ordering import lexical_order
from rankbench.core.brief import Facts, as_html
from rankbench.core.contract import Flags, Floats, Int8s, Int32s, Int64s, Ints, Solver
from rankbench.core.errors import UserError
from rankbench.core.streams import RNG
from rankbench.data.by_item import ByItem, users_of
from rankbench.data.views import layout
from rankbench.data.views.layout import ItemFeatures, Labels
from rankbench.features.single import as_doubles
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.shared.rows import ComparisonRows, SparseRows

_OTHER_SOLVER = "pass ratings, or take a solver that learns from comparisons (rankbench list solvers)"


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of each user, one per item, with the items in ascending order.

    Ratings imply an order with ties: a strictly higher value is preferred. `folds` is the published test fold
    of each row, counted from 1; 0 means none. `user_ids` and `item_ids` are the ids of the publication, by which
    a split can be exported and made again elsewhere. `times` says when each rating was given, in whole numbers that
    grow; only splits look at them.
    """

    indptr: Int64s
    items: Int32s
    values: Floats
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None
    folds: Int8s | None = None
    times: Int64s | None = None

    def __post_init__(self) -> None:
        layout.freeze(self, indptr=np.int64, items=np.int32, values=np.float64)
        for name, dtype in (("folds", np.int8), ("times", np.int64)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, layout.column(name, getattr(self, name), dtype))
                layout.check_lengths("items", self.items, name, getattr(self, name))
        layout.check_rows(self.indptr, len(self.items))
        layout.check_ids("item", self.items, self.n_items)
        layout.check_lengths("items", self.items, "values", self.values)
        if (row := layout.first_beyond(self.values)) is not None:
            remedy = f"within {LARGEST:g}: scale them" if np.isfinite(self.values[row]) else "finite"
            raise UserError(f"rating {row} is {self.values[row]:g}: ratings must be {remedy}")
        layout.check_ascending(self.indptr, self.items)

    @classmethod
    def from_triples(
        cls,
        users: Ints,
        items: Ints,
        values: Floats,
        n_users: int | None = None,
        n_items: int | None = None,
        item_features: ItemFeatures = None,
        folds: Ints | None = None,
        times: Ints | None = None,
        **labels: Labels,
    ) -> "Ratings":
        """Make ratings from (user, item, value) rows in any order."""
        users, items, values = (np.atleast_1d(np.asarray(column)) for column in (users, items, values))
        n_users, n_items = layout.sizes("rating", users, {"items": items}, n_users, n_items)
        layout.check_lengths("users", users, "items", items)
        layout.check_lengths("users", users, "values", values)
        order = layout.order(users, items, n_users, n_items)
        fold, time = (None if own is None else layout.arranged(np.asarray(own), order) for own in (folds, times))
        columns = layout.arranged(items, order), layout.arranged(values, order)
        return cls(layout.row_ends(users, n_users), *columns, n_items, item_features, folds=fold, times=time, **labels)

    @property
    def n_users(self) -> int:
        """The number of users, including users without a rating."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> SparseRows:
        """The ratings as the kernels take them: one sparse row per user, with the items as columns."""
        return SparseRows(indptr=self.indptr, columns=self.items, values=self.values)

    @property
    def has_order(self) -> Flags:
        """A mask of the users whose ratings imply an order: not all of their values are equal."""
        found = np.zeros(self.n_users, bool)
        for users, rows in layout.blocks(self.indptr):
            starts = self.indptr[users.start : users.stop + 1] - rows.start
            changes = np.concatenate([[0], np.cumsum(np.diff(self.values[rows]) != 0)])
            some = np.diff(starts) > 0
            found[users][some] = changes[starts[1:][some] - 1] > changes[starts[:-1][some]]
        return found

    def __repr__(self) -> str:
        return _in_brief(self, self._facts())

    def _repr_html_(self) -> str:
        return as_html("Ratings", self._facts())

    def by_item(self) -> ByItem:
        """The ratings in the order of the items, computed anew in each call."""
        return ByItem.of(self.users, self.items, self.n_items)

    def __len__(self) -> int:
        return len(self.items)

    def _facts(self) -> list[tuple[str, str]]:
        scale = f" from {self.values.min():g} to {self.values.max():g}" if len(self) else ""
        times = [] if self.times is None or not len(self) else [f"from {self.times.min()} to {self.times.max()}"]
        dated = [("times", text) for text in times]
        return [*_sizes_of(self), ("ratings", f"{len(self):,}{scale}"), *dated, *_extras_of(self)]

    def take(self, rows: Ints) -> "Ratings":
        """The view with these rows only (ascending row numbers), and with the same users and items."""
        return replace(
            self,
            indptr=layout.taken_ends(self.indptr, rows),
            items=sealed(self.items[rows]),
            values=sealed(self.values[rows]),
            folds=None if self.folds is None else self.folds[rows],
            times=None if self.times is None else sealed(self.times[rows]),
        )

    def where(self, mask: Flags) -> "Ratings":
        """The view with the rows of this mask only, and with the same users and items; made block by block."""
        more = {name: column for name in ("folds", "times") if (column := getattr(self, name)) is not None}
        indptr, (items, values, *kept) = layout.where(self.indptr, mask, (self.items, self.values, *more.values()))
        beside: dict[str, Any] = dict(zip(more, kept, strict=True))
        return replace(self, indptr=indptr, items=items, values=values, **beside)

    def at_least(self, least: float | None) -> "Ratings":
        """The view with the ratings that are no lower than this; all of them without it."""
        return self if least is None else self.where(self.values >= least)

    def comparisons(self, limit: int | None = None, rng: RNG = None) -> "Comparisons":
        """The strict pairs that the ratings imply; with a limit, at most that many per user, drawn by `rng`."""
        rng = None if rng is None else np.random.default_rng(rng)
        counts = pairs_kernel.count(ratings=self.rows)
        if limit is not None and limit < 0:
            raise UserError(f"limit={limit} is out of range: must be at least 0")
        if limit is None:
            kept, rng = counts, rng or np.random.default_rng(0)  # with all pairs, no number is drawn
        elif rng is None:
            raise UserError("drawing comparisons needs a random generator: pass rng=np.random.default_rng(0)")
        else:
            kept = np.minimum(counts, limit)
        indptr = np.concatenate([[0], np.cumsum(kept)])
        better, worse = pairs_kernel.list_pairs(ratings=self.rows, counts=counts, out_indptr=indptr, rng=rng)
        labels = {name: getattr(self, name) for name in LABELS}
        return Comparisons(indptr, sealed(better), sealed(worse), self.n_items, self.item_features, **labels)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of two items by each user; a user's rows are sorted by (better, worse), and may repeat.

    `groups` has a number for each row: the ranking, question or session that it came from. Splits keep the rows of one
    user and group together, since one of them may follow from the others; solvers never see it.
    """

    indptr: Int64s
    better: Int32s
    worse: Int32s
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None
    groups: Int32s | None = None

    def __post_init__(self) -> None:
        layout.freeze(self, indptr=np.int64, better=np.int32, worse=np.int32)
        if self.groups is not None:
            object.__setattr__(self, "groups", layout.column("groups", self.groups, np.int32))
            layout.check_lengths("better", self.better, "groups", self.groups)
        layout.check_rows(self.indptr, len(self.better))
        layout.check_lengths("better", self.better, "worse", self.worse)
        layout.check_ids("item", self.better, self.n_items)
        layout.check_ids("item", self.worse, self.n_items)
        if (same := self.better == self.worse).any():
            row = int(np.flatnonzero(same)[0])
            raise UserError(f"comparison {row} compares item {self.better[row]} with itself: leave it out")

    @classmethod
    def from_triples(
        cls,
        users: Ints,
        better: Ints,
        worse: Ints,
        n_users: int | None = None,
        n_items: int | None = None,
        item_features: ItemFeatures = None,
        groups: Ints | None = None,
        **labels: Labels,
    ) -> "Comparisons":
        """Make comparisons from (user, better item, worse item) rows in any order."""
        users, better, worse = (np.atleast_1d(np.asarray(column)) for column in (users, better, worse))
        items = {"better": better, "worse": worse}
        n_users, n_items = layout.sizes("comparison", users, items, n_users, n_items)
        layout.check_lengths("users", users, "better", better)
        layout.check_lengths("users", users, "worse", worse)
        if groups is None:
            order = lexical_order((users, n_users), (better, n_items), (worse, n_items))
        else:
            order = np.lexsort((groups, worse, better, users))
        columns = layout.arranged(better, order), layout.arranged(worse, order)
        group = None if groups is None else layout.arranged(np.asarray(groups), order)
        return cls(layout.row_ends(users, n_users), *columns, n_items, item_features, groups=group, **labels)

    @property
    def n_users(self) -> int:
        """The number of users, including users without a comparison."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> ComparisonRows:
        """The comparisons as the kernels take them."""
        return ComparisonRows(indptr=self.indptr, better=self.better, worse=self.worse)

    def __repr__(self) -> str:
        return _in_brief(self, self._facts())

    def _repr_html_(self) -> str:
        return as_html("Comparisons", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        return [*_sizes_of(self), ("comparisons", f"{len(self):,}"), *_extras_of(self)]

    def __len__(self) -> int:
        return len(self.better)

    def take(self, rows: Ints) -> "Comparisons":
        """The view with these rows only (ascending row numbers), and with the same users and items."""
        better, worse = sealed(self.better[rows]), sealed(self.worse[rows])
        groups = None if self.groups is None else sealed(self.groups[rows])
        return replace(self, indptr=layout.taken_ends(self.indptr, rows), better=better, worse=worse, groups=groups)

    def where(self, mask: Flags) -> "Comparisons":
        """The view with the rows of this mask only, and with the same users and items; made block by block."""
        more = () if self.groups is None else (self.groups,)
        indptr, (better, worse, *groups) = layout.where(self.indptr, mask, (self.better, self.worse, *more))
        return replace(self, indptr=indptr, better=better, worse=worse, groups=groups[0] if groups else None)


View = Ratings | Comparisons
LABELS = ("feature_names", "user_ids", "item_ids")
VIEWS: dict[str, type] = {"Ratings": Ratings, "Comparisons": Comparisons}


def _in_brief(view: View, facts: Facts) -> str:
    """A view on one line."""
    return f"{type(view).__name__}({', '.join(f'{name}: {value}' for name, value in facts)})"


def _sizes_of(view: View) -> list[tuple[str, str]]:
    """The numbers of users and items, with an id of each."""
    sizes = (("users", view.n_users, view.user_ids), ("items", view.n_items, view.item_ids))
    return [(name, f"{size:,}" + _like(ids)) for name, size, ids in sizes]


def _like(ids: Labels) -> str:
    return f" like {ids[:1].tolist()[0]!r}" if ids is not None and len(ids) else ""


def _extras_of(view: View) -> list[tuple[str, str]]:
    """What a view has beside its rows."""
    features = view.item_features
    return [] if features is None else [("item features", f"{features.shape[1]:,}")]


def view_of(arrays: Arrays, prefix: str = "") -> Any:
    """The view that is packed into these arrays, which were just read or mapped from a file and are not shared."""
    return unpack({name: sealed(array) for name, array in arrays.items()}, VIEWS, prefix)  # so no column is copied


def mismatch(solver: Solver, view: View) -> str | None:
    """Why this solver cannot learn from this view, or None."""
    if solver.needs_features and view.item_features is None:
        return "needs item features, the data has none"
    if isinstance(view, Comparisons) and Comparisons not in accepted(solver):
        return "learns from ratings, the data holds comparisons"
    return None


def offer(solver: Solver, view: View) -> View:
    """The view reduced to what the solver declares that it learns from."""
    if reason := mismatch(solver, view):
        remedy = "load data that has them" if solver.needs_features and view.item_features is None else _OTHER_SOLVER
        raise UserError(f"{type(solver).__name__} {reason}", remedy=remedy)
    withheld: dict[str, None] = dict.fromkeys(LABELS)
    if not solver.needs_features:
        withheld["item_features"] = None
    withheld |= {"folds": None, "times": None} if isinstance(view, Ratings) else {"groups": None}
    offered = replace(view, **withheld)  # type: ignore[arg-type]
    if offered.item_features is not None and not getattr(solver, "takes_single", False):
        offered = replace(offered, item_features=as_doubles(offered.item_features))
    if isinstance(offered, Ratings) and Ratings not in accepted(solver):
        return offered.comparisons()
    return offered


def accepted(solver: Any) -> tuple[type, ...]:
    """The kinds of data that a solver learns from."""
    return solver.learns_from if isinstance(solver.learns_from, tuple) else (solver.learns_from,)
