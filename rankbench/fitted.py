"""A trained model with the data's own ids: it recommends items to users, ranks items, and scores pairs by their ids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.special import expit

from rankbench import explanations, models, new_users
from rankbench.arrays import soundness
from rankbench.arrays.npz import Array, Arrays
from rankbench.core.brief import as_html
from rankbench.core.contract import Flags, Floats, FoldsIn, Int32s, Int64s, Ints, Model, Scattered, ScoresAll
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Labels, View, accepted
from rankbench.metrics.catalogue import seen_items
from rankbench.metrics.reliability import gaps_of, slope_of
from rankbench.names import checked_threads

if TYPE_CHECKING:
    import pandas

Kind = Literal["user", "item"]
_IDS: dict[Kind, str] = {"user": "ids.users", "item": "ids.items"}  # arrays in a file; no field of a model is so named
_SEEN = ("seen.indptr", "seen.items", "seen.n_items")
_SOLVER, _SLOPE = "solver", "slope"
_BLOCK = 1 << 20  # scores in memory at a time, 8 MiB; more if one user has more items
_COMPARED = 100_000  # ids that a wrong one is compared with, to suggest the most similar


@dataclass(frozen=True, eq=False)
class Seen:
    """The items that each user has in the training part, in CSR form, and the number of items of the catalogue."""

    indptr: Int64s
    items: Int32s
    n_items: int

    @classmethod
    def of(cls, train: View) -> "Seen":
        """The items of each user in this training part; both items of a comparison count."""
        return cls(*seen_items(train), train.n_items)

    def of_user(self, user: int) -> Int64s:
        """The items of one user."""
        return np.unique(self.items[self.indptr[user] : self.indptr[user + 1]]).astype(np.int64)

    def validate(self) -> None:
        """Raise an error unless all items are in the catalogue and the rows of the users follow each other."""
        (rows,) = soundness.ids("seen.items", self.items, self.n_items, None)
        soundness.pointers("seen.indptr", self.indptr, len(np.atleast_1d(self.indptr)) - 1, rows)


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
        return cls(model, train.user_ids, train.item_ids, seen_items, solver if isinstance(solver, FoldsIn) else None)

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
        return self.score(*np.broadcast_arrays(self._numbers("user", users), self._numbers("item", items)))

    def chances(self, users: Any, items: Any, others: Any) -> Floats:
        """The chance that each user prefers the item to the other one: 1 / (1 + e^-d), d the difference of scores.

        It is one for models of chances, such as `global[loss=logistic]` and `frsvm[loss=logistic]`, without a penalty
        that is too strong; other models need `calibrated` before. One id goes with several.
        """
        whose, one, other = np.broadcast_arrays(
            self._numbers("user", users), self._numbers("item", items), self._numbers("item", others)
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
        that a user without training rows may get none. All users' scores are never in memory at once.

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
        return pandas.concat(list(blocks), ignore_index=True)

    def recommend_in_blocks(
        self, users: Any = None, k: int = 10, *, items: Any = None, seen: bool = False, threads: int = 1
    ) -> Iterator["pandas.DataFrame"]:
        """As `recommend`, block by block of users, for more users than fit into memory; the first may be empty."""
        checked_threads(threads)
        if not seen and self.seen is None:
            raise UserError("this model does not know what users have seen", remedy="pass seen=True, or fit it again")
        chosen = self._everyone() if users is None else self._numbers("user", users)
        among = None if items is None else np.unique(self._numbers("item", items))
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
        (number,) = _one(self._numbers("user", user), user)
        asked = np.arange(self.n_items) if items is None else self._numbers("item", items)
        scores = self.score(np.full(len(asked), number), asked)
        order = np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")
        return self._table([number], [asked[order]], [scores[order]])

    def why(self, user: Any, item: Any, k: int = 5) -> "pandas.DataFrame":
        """What speaks most for an item: items that the user has, or its features, each with what it adds to the score.

        The contributions add up to the score. How a score falls into parts is said in `rankbench.explanations`.

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

        (number,) = _one(self._numbers("user", user), user)
        numbers = self._numbers("item", item)
        if not np.isfinite(self.score(np.full(len(numbers), number), numbers)).all():
            raise UserError("the model gives an item no score for this user", remedy="ask for what it recommends")
        own = np.zeros(0, np.int64) if self.seen is None else self.seen.of_user(number)
        explain = explanations.explaining(self.model, number, own)
        rows = [row for one in numbers for row in self._reasons(number, one, explain(one).strongest(_checked_k(k)))]
        return pandas.DataFrame(rows, columns=["user", "item", "because", "contribution"])

    def _reasons(self, user: Any, item: Any, found: explanations.Strongest) -> Iterator[tuple[Any, Any, Any, float]]:
        """The rows of `why` for one item."""
        names = _named(found.numbers, self.item_ids) if found.kind == "item" else found.numbers
        about = _named(np.array([user]), self.user_ids)[0], _named(np.array([item]), self.item_ids)[0]
        values = zip(names, found.values, strict=True)
        yield from ((*about, f"{found.kind} {name}", self.slope * float(value)) for name, value in values)
        yield from ((*about, name, self.slope * value) for name, value in found.others.items())

    def fold_in(self, ratings: View | Mapping[Any, float], *, threads: int = 1) -> "Fitted":
        """The same model for users it was not trained on, from their ratings or comparisons; its items stay.

        Each user gets exactly what the solver's step for users would give. Ratings of items that the model does not
        know are left out.

        Parameters
        ----------
        ratings : Ratings, Comparisons or dict
            Ratings (or comparisons, for a solver that learns from them) of one or more users, with the ids of the
            model's data; or the ratings of one user by the item's id.
        threads : int
            Threads that fit.

        Returns
        -------
        Fitted
            The model of these users alone, who have seen what they rated.
        """
        if self.solver is None:
            problem = "the solver of this model is unknown, or fits no further users"
            raise UserError(problem, remedy=f"fit one of {', '.join(new_users.able())}")
        given = new_users.as_ratings(ratings)
        view = new_users.renumbered(given, *self._places("item", self._item_ids_in(given)), self.n_items)
        if type(view) not in accepted(self.solver):
            raise UserError(f"{type(self.solver).__name__} learns from ratings, and these are comparisons")
        model = self.solver.fold_in(self.model, view, threads)
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
        known, features = self._features(), _matrix(features)
        if features.ndim != 2 or features.shape[1] != known.shape[1]:
            problem = f"the features have shape {list(features.shape)}"
            raise UserError(problem, remedy=f"give a row per new item with the {known.shape[1]} features of training")
        extended = _stacked(known, features)
        model = replace(self.model, **{models.FEATURES[type(self.model).__name__]: extended})
        seen = None if self.seen is None else replace(self.seen, n_items=extended.shape[0])
        ids = _joined(self.item_ids, item_ids, features.shape[0])
        found = replace(self, model=model, item_ids=ids, seen=seen)
        found.validate()
        return found

    def ids_of(self, kind: Kind, texts: list[str]) -> Array:
        """The ids that these texts mean, as from a command line: whole numbers where the data's ids are numbers."""
        ids = self._ids(kind)
        if ids is not None and ids.dtype.kind == "U":
            return np.array(texts, np.str_)
        try:
            return np.array([int(text) for text in texts], np.int64)
        except (ValueError, OverflowError):
            wrong = next(text for text in texts if not text.lstrip("-").isdecimal() or len(text) > 18)
            raise UserError(f"{kind} id {wrong!r} is unknown: the ids are whole numbers") from None

    def validate(self) -> None:
        """Raise an error unless the model is sound, and the ids are distinct and those of its users and items."""
        self.model.validate()
        if not 0 < self.slope < np.inf:
            raise UserError(f"the slope of its scores is {self.slope:g}, not a positive number")
        for kind in _IDS:
            _check_ids(kind, self._ids(kind))
        if self.seen is not None:
            self.seen.validate()
            sizes: dict[Kind, int] = {"user": len(self.seen.indptr) - 1, "item": self.seen.n_items}
            for kind, size in sizes.items():
                if (ids := self._ids(kind)) is not None and len(ids) != size:
                    raise UserError(f"there are {len(ids)} {kind} ids for {size} {kind}s")
        self.model.score(*(np.array([0 if ids is None else len(ids) - 1]) for ids in (self.user_ids, self.item_ids)))

    def _facts(self) -> list[tuple[str, str]]:
        """The model, and how many users and items it knows by which ids."""
        ids = [(f"{kind}s", self._ids(kind)) for kind in _IDS]
        known = [(name, f"{len(one):,} {name} like {one[:1].tolist()[0]!r}") for name, one in ids if one is not None]
        return [("model", repr(self.model)), *known]

    def _ids(self, kind: Kind) -> Labels:
        return self.user_ids if kind == "user" else self.item_ids

    @cached_property
    def _orders(self) -> dict[Kind, Ints]:
        """The order that sorts the ids of users, and of items."""
        return {kind: np.argsort(self._ids(kind)) for kind in _IDS if self._ids(kind) is not None}

    def _everyone(self) -> Ints:
        """The numbers of all users."""
        if self.user_ids is not None:
            return np.arange(len(self.user_ids))
        if self.seen is None:
            raise UserError("this model does not know its users", remedy="name users: model.recommend([0, 1, 2])")
        return np.arange(len(self.seen.indptr) - 1)

    def _numbers(self, kind: Kind, asked: Any) -> Ints:
        """The numbers from 0 of ids; an error if one is unknown."""
        ids, wanted = self._ids(kind), np.atleast_1d(np.asarray(asked))
        if ids is None or not len(wanted):
            size = len(self._everyone()) if kind == "user" and self.seen is not None else None
            _check_numbers(kind, wanted, self.n_items if kind == "item" else size)
            return wanted.astype(np.int64)
        if wanted.ndim != 1:
            raise UserError(f"{kind} ids have {wanted.ndim} dimensions", remedy="pass one id, or a list of ids")
        wanted = wanted.astype(np.str_) if wanted.dtype.kind == "O" and ids.dtype.kind == "U" else wanted
        places, known = self._places(kind, wanted)
        if not known.all():
            raise _unknown(kind, wanted[~known].tolist()[0], ids)
        return places

    def _item_ids_in(self, given: View) -> Array:
        """The ids of the items of these ratings; texts, as in a CSV file, mean numbers where the model has these."""
        ids = given.item_ids
        if ids is None and self.item_ids is not None:
            like = self.item_ids[:1].tolist()[0]
            raise UserError("the ratings have no ids of items", remedy=f"give ids like {like!r}")
        if ids is None:
            return np.arange(given.n_items)
        return self.ids_of("item", ids.tolist()) if ids.dtype.kind == "U" else np.asarray(ids)

    def _places(self, kind: Kind, wanted: Array) -> tuple[Ints, Flags]:
        """The number of each of these ids, and which of them are known; an error if they are of another type."""
        ids = self._ids(kind)
        if ids is None:
            _check_numbers(kind, wanted, None)
            return wanted, wanted < self.n_items
        if (wanted.dtype.kind == "U") != (ids.dtype.kind == "U"):
            raise UserError(f"{kind} id {wanted.tolist()[0]!r} is unknown: the ids are like {ids.tolist()[0]!r}")
        order = self._orders[kind]
        places = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
        return places, ids[places] == wanted

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
                _bar(scores, block, self.seen)
            columns = np.arange(scores.shape[1]) if among is None else among
            best = [_highest(row[columns], k) for row in scores]
            items = [columns[chosen] for chosen in best]
            yield self._table(block, items, [row[chosen] for row, chosen in zip(scores, items, strict=True)])

    def _table(self, users: Any, items: list[Ints], scores: list[Floats]) -> "pandas.DataFrame":
        """A row for each item of each of these users."""
        import pandas  # noqa: PLC0415

        counts = [len(one) for one in items]
        columns = {
            "user": _named(np.repeat(np.asarray(users, np.int64), counts), self.user_ids),
            "place": np.concatenate([np.arange(1, count + 1) for count in (*counts, 0)]),
            "item": _named(np.concatenate([*items, np.zeros(0, np.int64)]).astype(np.int64), self.item_ids),
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


def save(model: Model, path: str | Path) -> None:
    """Write a model to an npz file of plain arrays; if it is `Fitted`, with its ids and what users have seen."""
    plain: Model = model.model if isinstance(model, Fitted) else model
    plain = plain.gathered() if isinstance(plain, Scattered) else plain
    beside = _beside(model) if isinstance(model, Fitted) else {}
    if models.MODELS.get(type(plain).__name__) is not type(plain):
        problem = f"a {type(plain).__name__} cannot be saved"
        raise UserError(problem, remedy=f"only models of rankbench can: {', '.join(models.MODELS)}")
    models.save(plain, path, **beside)


def load(path: str | Path) -> Fitted:
    """Read a model that `save` wrote, with its ids and what users have seen, if the file has them."""
    arrays = models.arrays_in(path)
    model = models.unpacked(path, arrays)
    parts = [arrays[name] for name in _SEEN if name in arrays]
    seen = Seen(parts[0], parts[1], int(parts[2])) if len(parts) == len(_SEEN) else None
    try:
        solver = new_users.named(str(arrays[_SOLVER])) if _SOLVER in arrays else None
        slope = float(arrays.get(_SLOPE, np.array(1.0)))
        found = Fitted(model, arrays.get(_IDS["user"]), arrays.get(_IDS["item"]), seen, solver, slope)
        found.validate()
    except UserError as error:
        raise models.unsound(path, error) from None
    return found


def _beside(model: Fitted) -> Arrays:
    """The arrays that stand in a file beside those of the model."""
    seen = () if model.seen is None else (model.seen.indptr, model.seen.items, model.seen.n_items)
    for kind in _IDS:
        _check_writable(kind, model._ids(kind))
    ids = {_IDS["user"]: model.user_ids, _IDS["item"]: model.item_ids}
    solver = None if model.solver is None else new_users.name_of(model.solver)
    slope = None if model.slope == 1 else model.slope
    values = dict(zip(_SEEN, seen, strict=False)) | ids | {_SOLVER: solver, _SLOPE: slope}
    return {name: np.asarray(value) for name, value in values.items() if value is not None}


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


def _bar(scores: Floats, users: Ints, seen: Seen) -> None:
    """Give the items that users have seen the lowest score."""
    counts = seen.indptr[users + 1] - seen.indptr[users]
    starts = np.repeat(seen.indptr[users] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    scores[np.repeat(np.arange(len(users)), counts), seen.items[starts + np.arange(len(starts))]] = -np.inf


def _named(numbers: Ints, ids: Labels) -> Array:
    return numbers if ids is None else np.asarray(ids)[numbers]


def _joined(ids: Labels, added: Any, count: int) -> Labels:
    """The ids with those of `count` new items behind them."""
    if (ids is None) != (added is None):
        remedy = "leave item_ids out" if ids is None else "pass item_ids, one for each row of the features"
        raise UserError(f"the data's items have {'no ids' if ids is None else 'ids'}", remedy=remedy)
    if ids is None:
        return None
    new = np.atleast_1d(np.asarray(added))
    if len(new) != count or (new.dtype.kind == "U") != (ids.dtype.kind == "U"):
        problem = f"item_ids are {new.dtype}[{len(new)}] for {count} new items"
        raise UserError(problem, remedy=f"give one id like {ids.tolist()[0]!r} for each row of the features")
    return np.concatenate([ids, new])


def _matrix(features: Any) -> Any:
    """Item features as a matrix of finite numbers."""
    try:
        sparse = scipy.sparse.issparse(features)
        if np.iscomplexobj(features):
            raise TypeError("complex numbers would be cut")
        found = scipy.sparse.csr_array(features, dtype=np.float64) if sparse else np.asarray(features, np.float64)
    except (ValueError, TypeError):
        raise UserError("the features are no numbers", remedy="give a matrix of numbers, a row per new item") from None
    if not np.isfinite(found.data if scipy.sparse.issparse(found) else found).all():
        raise UserError("the features hold NaN or infinite values", remedy="fill or drop them first")
    return found


def _stacked(known: Any, new: Any) -> Any:
    """The rows of both matrices, sparse if the first is."""
    if scipy.sparse.issparse(known):
        return scipy.sparse.csr_array(scipy.sparse.vstack([known, scipy.sparse.csr_array(new)]))
    return np.vstack([known, (new.toarray() if scipy.sparse.issparse(new) else new).astype(known.dtype)])


def _checked_k(k: SupportsIndex) -> int:
    """The number of recommendations, or an error if it is no whole number from 1."""
    try:
        number = 0 if isinstance(k, bool) else index(k)
    except TypeError:
        number = 0
    if number < 1:
        raise UserError(f"k={k!r} is not valid", remedy="give a whole number of at least 1")
    return number


def _one(numbers: Ints, asked: Any) -> Ints:
    if len(numbers) != 1:
        raise UserError(f"rank takes one user, not {len(numbers)}", remedy="call it once for each, or use recommend")
    return numbers


def _check_numbers(kind: Kind, numbers: Array, size: int | None) -> None:
    """Raise an error unless these are numbers of users or items, from 0 to size - 1."""
    if len(numbers) and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
        raise UserError(f"{kind} id {numbers.ravel()[0]!s:.60} is unknown: the data has no ids but numbers from 0")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < (np.inf if size is None else size):
        wrong = numbers.min() if numbers.min() < 0 else numbers.max()
        known = f"ids run from 0 to {size - 1}" if size is not None else "ids count from 0"
        raise UserError(f"{kind} id {wrong} is out of range: {known}")


def _check_ids(kind: Kind, ids: Labels) -> None:
    """Raise an error unless the ids are distinct integers or texts."""
    if ids is None:
        return
    if ids.ndim != 1 or ids.dtype.kind not in "iuU" or not len(ids):
        raise UserError(f"{kind} ids are {ids.dtype}{list(ids.shape)}: they must be a vector of integers or text")
    _check_writable(kind, ids)
    if len(np.unique(ids)) < len(ids):
        raise UserError(f"{kind} ids are not distinct")


def _check_writable(kind: Kind, ids: Labels) -> None:
    """Raise an error if an id is a text that no file can hold."""
    if ids is not None and ids.dtype.kind == "U" and (wrong := soundness.first_unwritable(ids)) is not None:
        raise UserError(f"{kind} id {wrong!r:.60} has a lone surrogate, which no file can hold")


def _unknown(kind: Kind, asked: object, ids: npt.NDArray[Any]) -> UserError:
    """The error for an id that is not among the ids; it suggests the most similar one."""
    known = ids[:_COMPARED].tolist() if ids.dtype.kind == "U" else []
    nearest = get_close_matches(str(asked), known, n=1, cutoff=0.6)
    remedy = f"did you mean {nearest[0]!r}?" if nearest else f"the {len(ids):,} ids are like {ids.tolist()[0]!r}"
    return UserError(f"{kind} id {asked!r} is unknown", remedy=remedy)
