"""A trained model with the data's own ids: it recommends items to users, ranks items, and scores pairs by their ids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from scipy.special import expit

from rankbench import models
from rankbench.arrays.npz import Array
from rankbench.core.brief import as_html
from rankbench.core.contract import Floats, FoldsIn, Ints, Model, ScoresAll
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, View, accepted
from rankbench.data.views.layout import Labels
from rankbench.fitted import explanations, new_users, unserved
from rankbench.fitted.ids import Ids
from rankbench.fitted.new_items import matrix_of, stacked
from rankbench.fitted.seen import Seen
from rankbench.metrics.reliability import gaps_of, slope_of
from rankbench.names import checked_threads

if TYPE_CHECKING:
    import pandas

_BLOCK = 1 << 20  # scores in memory at a time, 8 MiB; more if one user has more items


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with the ids by which its data knows users and items, and with what users have seen in training.

    `score` and `score_all` are the model's own times `slope`, by numbers from 0. Where ids are None, the numbers are
    the ids.
    """

    model: Any
    user_ids: Labels = None  # a vector of integers or text
    item_ids: Labels = None
    seen: Seen | None = None  # None: unknown, as in files of older models
    solver: FoldsIn | None = None  # of the model, if it can fit more users to it
    slope: float = 1.0  # what the model's scores are multiplied by, so that their chances can be believed

    @classmethod
    def of(cls, model: Model, train: View, seen: View | None = None, solver: object = None) -> "Fitted":
        """The model that was trained on this part; `seen` is the part with the items seen, if it is another one."""
        seen_items = Seen.of(train if seen is None else seen)
        able = solver if isinstance(solver, FoldsIn) else None
        if able is not None and hasattr(able, "as_trained"):
            able = able.as_trained(train)
        return cls(model, train.user_ids, train.item_ids, seen_items, able)

    @cached_property
    def users(self) -> Ids:
        """The ids of the users."""
        counted = None if self.user_ids is not None or self.seen is None else len(self.seen.indptr) - 1
        return Ids("user", self.user_ids, counted)

    @cached_property
    def items(self) -> Ids:
        """The ids of the items."""
        return Ids("item", self.item_ids, self.n_items if self.item_ids is None else None)

    @property
    def n_items(self) -> int:
        """The number of items in the catalogue."""
        if self.item_ids is not None:
            return len(self.item_ids)
        if self.seen is not None:
            return self.seen.n_items
        return int(self.model.score_all(np.zeros(1, np.int32)).shape[1])

    def __repr__(self) -> str:
        return f"Fitted({', '.join(text for _, text in self._facts())})"

    def _repr_html_(self) -> str:
        return as_html("Fitted", self._facts())

    def score(self, users: Ints, items: Ints) -> Floats:
        """The model's score of each pair, by numbers from 0."""
        scores: Floats = self.model.score(users, items)
        return scores if self.slope == 1 else self.slope * scores

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the model's scores of all items for these users, by numbers from 0."""
        if isinstance(self.model, ScoresAll):
            scores = self.model.score_all(users, threads)
            return scores if self.slope == 1 else self.slope * scores
        items = np.tile(np.arange(self.n_items, dtype=np.int32), len(users))
        return self.score(np.repeat(users, self.n_items), items).reshape(len(users), self.n_items)

    def score_ids(self, users: Any, items: Any) -> Floats:
        """The model's score of each pair, by ids; one id goes with several."""
        return self.score(*_side_by_side(users=self.users.numbers(users), items=self.items.numbers(items)))

    def chances(self, users: Any, items: Any, others: Any) -> Floats:
        """The chance that each user prefers the item to the other one: 1 / (1 + e^-d), d the difference of scores.

        It is one for models of chances, such as `global[loss=logistic]` and `frsvm[loss=logistic]`, without a penalty
        that is too strong; other models need `calibrated` before. One id goes with several.
        """
        whose, one, other = _side_by_side(
            users=self.users.numbers(users), items=self.items.numbers(items), others=self.items.numbers(others)
        )
        found: Floats = expit(self.score(whose, one) - self.score(whose, other))
        return found

    def calibrated(self, comparisons: Comparisons) -> "Fitted":
        """The same model with its scores on the scale on which its chances make these comparisons most likely.

        No order changes. The comparisons must not have been trained on: `split.validation`, or a part of the training
        part that was held out.
        """
        if not isinstance(comparisons, Comparisons):
            raise UserError(f"chances are fitted to Comparisons, not to {type(comparisons).__name__}")
        return replace(self, slope=slope_of(gaps_of(self.model, comparisons)))

    def recommend(
        self,
        users: Any = None,
        k: int = 10,
        *,
        items: Any = None,
        seen: bool = False,
        threads: int = 1,
    ) -> "pandas.DataFrame":
        """The k items with the highest scores for a user, for several users, or for all if none is named.

        Of items with equal scores the one that comes first in the data is first. Items without a score are left out, so
        that a user without training rows may get none, which a warning says. All users' scores are never in memory at
        once.

        Parameters
        ----------
        users : id or list of ids, optional
            The data's own ids; all users if none is given.
        k : int
            How many items for each user.
        items : list of ids, optional
            Recommend only from these.
        seen : bool
            Whether also items that the user has seen in training are recommended.
        threads : int
            Threads that score.

        Returns
        -------
        pandas.DataFrame
            A row for each recommendation: user, place from 1, item, score.
        """
        import pandas  # noqa: PLC0415  slow to import, and not needed to score

        blocks = self.recommend_in_blocks(users, k, items=items, seen=seen, threads=threads)
        found = pandas.concat(list(blocks), ignore_index=True)
        unserved.warn_of(self, users, items, seen, found["user"].unique())
        return found

    def recommend_in_blocks(
        self, users: Any = None, k: int = 10, *, items: Any = None, seen: bool = False, threads: int = 1
    ) -> Iterator["pandas.DataFrame"]:
        """As `recommend`, block by block of users, for more users than fit into memory; the first may be empty."""
        checked_threads(threads)
        if not seen and self.seen is None:
            raise UserError("this model does not know what users have seen", remedy="pass seen=True, or fit it again")
        chosen = self.users.everyone() if users is None else self.users.numbers(users)
        among = None if items is None else np.unique(self.items.numbers(items))
        return self._best(chosen, among, (_checked_k(k), seen), threads)

    def rank(self, user: Any, items: Any = None) -> "pandas.DataFrame":
        """These items, or all items, in the order of their scores for a user, best first; items without a score last.

        Items that the user has seen are ranked too.

        Parameters
        ----------
        user : id
            The data's own id of the user.
        items : list of ids, optional
            The items to rank; all if none is given.

        Returns
        -------
        pandas.DataFrame
            A row for each item: user, place from 1, item, score.
        """
        number = _one(self.users.numbers(user), "rank")
        asked = np.arange(self.n_items) if items is None else self.items.numbers(items)
        scores = self.score(np.full(len(asked), number), asked)
        order = np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")
        return self._table([number], [asked[order]], [scores[order]])

    def why(self, user: Any, item: Any, k: int = 5) -> "pandas.DataFrame":
        """What speaks most for an item: items that the user has, or its features, each with what it adds to the score.

        The contributions add up to the score. How a score falls into parts is said in `rankbench.fitted.explanations`.

        Parameters
        ----------
        user, item : id
            The data's own ids.
        k : int
            How many of the strongest; the others are added up in one row.

        Returns
        -------
        pandas.DataFrame
            Rows of user, item, because (`item ID`, `feature NUMBER`, or what else adds to it) and contribution.
        """
        import pandas  # noqa: PLC0415  slow to import

        number = _one(self.users.numbers(user), "why")
        numbers = self.items.numbers(item)
        if not np.isfinite(self.score(np.full(len(numbers), number), numbers)).all():
            raise UserError("the model gives an item no score for this user", remedy="ask for what it recommends")
        own = np.zeros(0, np.int64) if self.seen is None else self.seen.of_user(number)
        explain = explanations.explaining(self.model, number, own)
        rows = [row for one in numbers for row in self._reasons(number, one, explain(one).strongest(_checked_k(k)))]
        return pandas.DataFrame(rows, columns=["user", "item", "because", "contribution"])

    def _reasons(self, user: Any, item: Any, found: explanations.Parts) -> Iterator[tuple[Any, Any, Any, float]]:
        """The rows of `why` for one item."""
        names = self.items.named(found.numbers) if found.kind == "item" else found.numbers
        about = self.users.named(np.array([user]))[0], self.items.named(np.array([item]))[0]
        values = zip(names, found.values, strict=True)
        yield from ((*about, f"{found.kind} {name}", self.slope * float(value)) for name, value in values)
        yield from ((*about, name, self.slope * value) for name, value in found.others.items())

    def fold_in(self, ratings: View | Mapping[Any, float], *, threads: int = 1) -> "Fitted":
        """The same model for users it was not trained on, from their ratings or comparisons; its items stay.

        Each user gets exactly what the solver's step for users would give; where it has several minima, one of them.
        Ratings of items that the model does not know are left out. A model that scores all users alike scores these,
        too.

        Parameters
        ----------
        ratings : Ratings, Comparisons or dict
            Ratings (or comparisons, if the solver learns from them) of one or more users, with the ids of the
            model's data; or the ratings of one user by the item's id.
        threads : int
            Threads that fit.

        Returns
        -------
        Fitted
            The model of these users alone, who have seen what they rated.
        """
        solver = self.solver
        if solver is None and not isinstance(self.model, models.ItemScores):
            problem = "the solver of this model is unknown, or fits no further users"
            raise UserError(problem, remedy="fit a solver with fold_in, such as mf, ials or frsvm")
        given = new_users.as_ratings(ratings)
        view = new_users.renumbered(given, *self.items.places(self._item_ids_in(given)), self.n_items)
        if solver is not None and isinstance(view, Comparisons) and Comparisons not in accepted(solver):
            raise UserError(f"{type(solver).__name__} learns from ratings, and these are comparisons")
        model = self.model if solver is None else solver.fold_in(self.model, view, threads)
        return replace(self, model=model, user_ids=view.user_ids, seen=Seen.of(view))

    def with_items(self, features: Any, item_ids: Any = None) -> "Fitted":
        """The same model with more items, which it scores by these features, one row per item.

        The items come after those of the data.

        Parameters
        ----------
        features : array, sparse matrix or pandas.DataFrame
            A row for each new item, with the features of training.
        item_ids : list of ids, optional
            Their ids. Without them, which the data must then lack too, they go on counting.

        Returns
        -------
        Fitted
            The model; the items of training have the scores that they had.
        """
        known, features = self._features(), matrix_of(features)
        if features.ndim != 2 or features.shape[1] != known.shape[1]:
            problem = f"the features have shape {list(features.shape)}"
            raise UserError(problem, remedy=f"give a row per new item with the {known.shape[1]} features of training")
        extended = stacked(known, features)
        model = replace(self.model, **{models.FEATURES[type(self.model).__name__]: extended})
        seen = None if self.seen is None else replace(self.seen, n_items=extended.shape[0])
        ids = self.items.joined(item_ids, features.shape[0])
        found = replace(self, model=model, item_ids=ids, seen=seen)
        found.validate()
        return found

    def validate(self) -> None:
        """Raise an error unless the model is sound, and the ids are distinct and those of its users and items."""
        self.model.validate()
        if not 0 < self.slope < np.inf:
            raise UserError(f"the slope of its scores is {self.slope:g}, not a positive number")
        if self.seen is not None:
            self.seen.validate()
        both = self.users, self.items
        sizes = (None, None) if self.seen is None else (len(self.seen.indptr) - 1, self.seen.n_items)
        for ids, size in zip(both, sizes, strict=True):
            ids.validate()
            if ids.labels is not None and size not in (None, len(ids.labels)):
                raise UserError(f"there are {len(ids.labels)} {ids.kind} ids for {size} {ids.kind}s")
        last = ((ids.size or 1) - 1 if ids.labels is None else len(ids.labels) - 1 for ids in both)
        self.model.score(*(np.array([number]) for number in last))

    def _facts(self) -> list[tuple[str, str]]:
        """The model, and how many users and items it knows by which ids."""
        ids = (("users", self.user_ids), ("items", self.item_ids))
        known = [(name, f"{len(one):,} {name} like {one[:1].tolist()[0]!r}") for name, one in ids if one is not None]
        return [("model", repr(self.model)), *known]

    def _item_ids_in(self, given: View) -> Array:
        """The ids of the items of these ratings; texts, as in a CSV file, mean numbers where the model has these."""
        ids = given.item_ids
        if ids is None and self.item_ids is not None:
            like = self.item_ids[:1].tolist()[0]
            raise UserError("the ratings have no ids of items", remedy=f"give ids like {like!r}")
        if ids is None:
            return np.arange(given.n_items)
        return self.items.of_texts(ids.tolist()) if ids.dtype.kind == "U" else np.asarray(ids)

    def _best(
        self, users: Ints, among: Ints | None, how: tuple[int, bool], threads: int
    ) -> Iterator["pandas.DataFrame"]:
        """The recommendations for these users, block by block; `how` is their number and whether seen items count."""
        k, seen = how
        size = max(1, _BLOCK // max(1, self.n_items))
        for first in range(0, max(1, len(users)), size):
            block = users[first : first + size].astype(np.int32)
            scores = np.where(np.isnan(found := self.score_all(block, threads)), -np.inf, found)
            if not seen and self.seen is not None:
                self.seen.bar(scores, block)
            columns = np.arange(scores.shape[1]) if among is None else among
            best = [_highest(row[columns], k) for row in scores]
            items = [columns[chosen] for chosen in best]
            yield self._table(block, items, [row[chosen] for row, chosen in zip(scores, items, strict=True)])

    def _table(self, users: Any, items: list[Ints], scores: list[Floats]) -> "pandas.DataFrame":
        """A row for each item of each of these users."""
        import pandas  # noqa: PLC0415

        counts = [len(one) for one in items]
        columns = {
            "user": self.users.named(np.repeat(np.asarray(users, np.int64), counts)),
            "place": np.concatenate([np.arange(1, count + 1) for count in (*counts, 0)]),
            "item": self.items.named(np.concatenate([*items, np.zeros(0, np.int64)]).astype(np.int64)),
            "score": np.concatenate([*scores, np.zeros(0)]),
        }
        return pandas.DataFrame(columns)

    def _features(self) -> Any:
        """The item features of a model that scores by them."""
        kind = type(self.model).__name__
        given = isinstance(self.model, models.KernelExpansion) and self.model.kernel == "precomputed"
        if models.MODELS.get(kind) is type(self.model) and kind in models.FEATURES and not given:
            return getattr(self.model, models.FEATURES[kind])
        raise UserError(
            f"a {kind} scores only items of its data, as it knows no features of items",
            remedy="fit a solver whose models keep item features, such as frsvm or ranksvm-separate",
        )


def _highest(scores: Floats, k: int) -> Ints:
    """The places of the k highest finite scores, highest first; of equal scores the first is first."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    places = places[scores[places] > -np.inf]
    best: Ints = places[np.argsort(-scores[places], kind="stable")[:k]]
    return best


def _checked_k(k: SupportsIndex) -> int:
    """The number of recommendations, or an error if it is no whole number from 1."""
    try:
        number = 0 if isinstance(k, bool) else index(k)
    except TypeError:
        number = 0
    if number < 1:
        raise UserError(f"k={k!r} is not valid", remedy="give a whole number of at least 1")
    return number


def _one(numbers: Ints, method: str) -> int:
    if len(numbers) != 1:
        remedy = "call it once for each, or use recommend"
        raise UserError(f"{method} takes one user, not {len(numbers)}", remedy=remedy)
    return int(numbers[0])


def _side_by_side(**numbers: Ints) -> tuple[Ints, ...]:
    """These vectors with one length: a single number is repeated."""
    try:
        return np.broadcast_arrays(*numbers.values())
    except ValueError:
        sizes = ", ".join(f"{name}: {len(column):,}" for name, column in numbers.items())
        raise UserError(f"ids do not go together ({sizes})", remedy="give as many of each, or one for all") from None
