"""The data's own ids of users or of items, and the numbers from 0 that models know them by."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankbench.arrays import soundness
from rankbench.arrays.distinct import places_among
from rankbench.arrays.npz import Array
from rankbench.core.contract import Flags, Ints
from rankbench.core.errors import UserError
from rankbench.data.views.layout import Labels

Kind = Literal["user", "item"]
_COMPARED = 100_000  # ids that a wrong one is compared with, to suggest the most similar


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids of all users, or of all items; where `labels` is None, the numbers from 0 are the ids."""

    kind: Kind
    labels: Labels  # a vector of integers or text
    size: int | None = None  # how many there are, if labels do not say it and it is known

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.labels)

    def everyone(self) -> Ints:
        """The numbers of all users, or of all items."""
        size = self.size if self.labels is None else len(self.labels)
        if size is None:
            problem = f"this model does not know its {self.kind}s"
            raise UserError(problem, remedy=f"name {self.kind}s: model.recommend([0, 1, 2])")
        return np.arange(size)

    def named(self, numbers: Ints) -> Array:
        """The ids of these numbers."""
        return numbers if self.labels is None else np.asarray(self.labels)[numbers]

    def numbers(self, asked: Any) -> Ints:
        """The numbers from 0 of ids; an error if one is unknown."""
        labels, wanted = self.labels, np.atleast_1d(np.asarray(asked))
        if labels is None or not len(wanted):
            self._check_numbers(wanted, self.size)
            return wanted.astype(np.int64)
        if wanted.ndim != 1:
            raise UserError(f"{self.kind} ids have {wanted.ndim} dimensions", remedy="pass one id, or a list of ids")
        if wanted.dtype.kind == "O":  # as columns of pandas are
            wanted = wanted.astype(np.str_) if labels.dtype.kind == "U" else np.array(wanted.tolist())
        places, known = self.places(wanted)
        if not known.all():
            raise _unknown(self.kind, wanted[~known].tolist()[0], labels)
        return places

    def places(self, wanted: Array) -> tuple[Ints, Flags]:
        """The number of each of these ids, and which of them are known; an error if they are of another type."""
        labels = self.labels
        if labels is None:
            self._check_numbers(wanted, None)
            return wanted, wanted < (np.inf if self.size is None else self.size)
        if wanted.dtype.kind not in ("U" if labels.dtype.kind == "U" else "iuf"):
            wrong = [one for one in wanted.tolist() if not isinstance(one, int)] or wanted.tolist()
            raise UserError(f"{self.kind} id {wrong[0]!r:.60} is unknown: the ids are like {labels.tolist()[0]!r}")
        return places_among(labels, wanted, self._order)

    def of_texts(self, texts: list[str]) -> Array:
        """The ids that these texts mean, as from a command line: whole numbers where the data's ids are numbers."""
        if self.labels is not None and self.labels.dtype.kind == "U":
            return np.array(texts, np.str_)
        numbers = np.empty(len(texts), np.int64)
        for place, text in enumerate(texts):
            try:
                numbers[place] = int(text)
            except (ValueError, OverflowError):
                raise UserError(f"{self.kind} id {text!r} is unknown: the ids are whole numbers") from None
        return numbers

    def joined(self, added: Any, count: int) -> Labels:
        """The ids with those of `count` new ones behind them."""
        labels = self.labels
        if (labels is None) != (added is None):
            remedy = "leave item_ids out" if labels is None else "pass item_ids, one for each row of the features"
            raise UserError(f"the data's items have {'no ids' if labels is None else 'ids'}", remedy=remedy)
        if labels is None:
            return None
        new = np.atleast_1d(np.asarray(added))
        if len(new) != count or (new.dtype.kind == "U") != (labels.dtype.kind == "U"):
            problem = f"item_ids are {new.dtype}[{len(new)}] for {count} new items"
            raise UserError(problem, remedy=f"give one id like {labels.tolist()[0]!r} for each row of the features")
        return np.concatenate([labels, new])

    def validate(self) -> None:
        """Raise an error unless the ids are distinct integers or texts."""
        labels = self.labels
        if labels is None:
            return
        if labels.ndim != 1 or labels.dtype.kind not in "iuU" or not len(labels):
            found = f"{self.kind} ids are {labels.dtype}{list(labels.shape)}"
            raise UserError(f"{found}: they must be a vector of integers or text")
        self.check_writable()
        if len(np.unique(labels)) < len(labels):
            raise UserError(f"{self.kind} ids are not distinct")

    def check_writable(self) -> None:
        """Raise an error if an id is a text that no file can hold."""
        if self.labels is not None and self.labels.dtype.kind == "U":
            wrong = soundness.first_unwritable(self.labels)
            if wrong is not None:
                raise UserError(f"{self.kind} id {wrong!r:.60} has a lone surrogate, which no file can hold")

    def _check_numbers(self, numbers: Array, size: int | None) -> None:
        """Raise an error unless these are numbers of users or items, from 0 to size - 1."""
        if len(numbers) and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            found = f"{self.kind} id {numbers.ravel()[0]!s:.60} is unknown"
            raise UserError(f"{found}: the data has no ids but numbers from 0")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < (np.inf if size is None else size):
            wrong = numbers.min() if numbers.min() < 0 else numbers.max()
            known = f"ids run from 0 to {size - 1}" if size is not None else "ids count from 0"
            raise UserError(f"{self.kind} id {wrong} is out of range: {known}")


def _unknown(kind: Kind, asked: object, ids: npt.NDArray[Any]) -> UserError:
    """The error for an id that is not among the ids; it suggests the most similar one."""
    known = ids[:_COMPARED].tolist() if ids.dtype.kind == "U" else []
    nearest = get_close_matches(str(asked), known, n=1, cutoff=0.6)
    remedy = f"did you mean {nearest[0]!r}?" if nearest else f"the {len(ids):,} ids are like {ids.tolist()[0]!r}"
    return UserError(f"{kind} id {asked!r} is unknown", remedy=remedy)
