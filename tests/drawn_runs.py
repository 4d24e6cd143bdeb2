"""Runs and truths for tests of conventions: drawn with ties, gaps and odd users, and in the forms that tools take."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankbench.judging.rankings import Lists

Nested = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A run and its truth, users and items by number and by id."""

    run: Lists
    truth: Lists
    ids: npt.NDArray[np.str_]

    def table(self, lists: Lists, fill: float) -> npt.NDArray[np.float64]:
        """The lists as a matrix of users and items, with this number where there is nothing."""
        found = np.full((len(lists.indptr) - 1, len(self.ids)), fill)
        found[lists.owners, lists.items] = lists.values
        return found

    def nested(self, lists: Lists) -> Nested:
        """The lists as a dictionary by user and item; users without items are not in it."""
        found: Nested = {}
        for user, (low, high) in enumerate(zip(lists.indptr[:-1], lists.indptr[1:], strict=True)):
            if low < high:
                items = self.ids[lists.items[low:high]].tolist()
                found[f"u{user}"] = dict(zip(items, lists.values[low:high].tolist(), strict=True))
        return found


def lists_of(rows: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]) -> Lists:
    """One list for each user from their items and numbers."""
    indptr = np.cumsum([0, *(len(items) for items, _ in rows)])
    items = np.concatenate([items for items, _ in rows]).astype(np.int32)
    return Lists(indptr, items, np.concatenate([values for _, values in rows]).astype(np.float64))


def drawn(
    seed: int,
    users: int = 40,
    items: int = 30,
    *,
    steps: int = 5,
    levels: int = 5,
    odd: bool = True,
    whole: bool = False,
) -> Drawn:
    """Lists of random lengths, scores of few values, and relevances from 0; the fewer `steps`, the more ties.

    With `odd`, some users are missing in the run, some in the truth, and some have no relevant item. A `whole` run has
    a score for each user and item, and leaves each user an item that is not in the truth.
    """
    rng = np.random.default_rng(seed)
    run, truth = [], []
    for user in range(users):
        appeal = rng.normal(size=items)
        own = rng.permutation(items)[: items if whole else rng.integers(1, items + 1)]
        judged = rng.permutation(items)[: rng.integers(1, items if whole else items + 1)]
        relevance = np.clip(
            np.round(levels / 2 + appeal[judged] * levels / 4 + rng.normal(size=len(judged))), 0, levels
        )
        if odd and user % 10 == 3:
            relevance[:] = 0
        scores = np.round(steps * (appeal[own] + rng.normal(size=len(own)))) / steps
        in_run = None if whole or not odd or user % 10 != 7 else 0
        in_truth = None if not odd or user % 10 != 9 else 0
        run.append((own[:in_run], scores[:in_run]))
        truth.append((judged[:in_truth], relevance[:in_truth]))
    ids = np.array([f"{'ab'[item % 2]}{item}" for item in range(items)])
    return Drawn(lists_of(run), lists_of(truth), ids)
