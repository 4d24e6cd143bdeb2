"""Small data for tests of splits, drawn by hypothesis, and helpers to inspect the parts."""

from collections import Counter

import numpy as np
from hypothesis import assume, settings
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.splits import Split, split
from rankbench.data.views import Comparisons, Ratings

patient = settings(deadline=None)  # a slow machine is no failure
SEEDS = st.integers(0, 99)
HALF = "half-per-user[reviewers=4,least=6,most=60,references=3,low=2,high=60]"
EVERY_SPLIT = (  # with settings under which data of this file's size is enough
    "given-folds",
    "n-per-user[n=5,least=2]",
    "items-per-task[n=4,test=3]",
    "per-user",
    "leave-one-out[n=2]",
    "half-per-user[reviewers=4,least=6]",
    HALF,
    "leave-reviewer-out[least=3,raters=2]",
    "entries",
    "entries[test=0.1,validation=0.1,train=0.4]",
    "cold-items",
    "new-users[test=0.4,known=2]",
    "binary[C=7]",
    "comparisons[n=10]",
    "comparisons[n=5,of=items]",
    "temporal[test=0.3]",
    "temporal[test=0.3,new_users=keep]",
    "leave-last-out[n=2]",
    "k-folds[k=3]",
    "k-folds[k=3,per=user]",
    "per-user[core=2]",
)


@st.composite
def rankings(draw):
    """Comparisons that follow from up to six rankings of each of up to eight users, of up to five items each."""
    rng, rows = np.random.default_rng(draw(st.integers(0, 2**32))), []
    for user, count in enumerate(draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))):
        for _ in range(count):
            order = rng.choice(8, rng.integers(2, 6), replace=False)
            number = len({row[3] for row in rows})
            rows += [(user, better, worse, number) for at, better in enumerate(order) for worse in order[at + 1 :]]
    assume(rows)
    users, better, worse, groups = np.array(rows).T
    return Comparisons.from_triples(users, better, worse, int(users.max()) + 1, 8, groups=groups)


@st.composite
def ratings(draw, folds=0):
    """Up to twelve users with up to fifteen ratings of twenty items each, some with none."""
    counts = np.array(draw(st.lists(st.integers(0, 15), min_size=1, max_size=12)))
    assume(counts.sum())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    items = np.concatenate([rng.choice(20, n, replace=False) for n in counts])
    users = np.repeat(np.arange(len(counts)), counts)
    values = rng.integers(1, 6, len(users)).astype(float)
    of_rows = rng.integers(0, folds + 1, len(users)) if folds else None
    times = rng.integers(0, 30, len(users))
    return Ratings.from_triples(users, items, values, len(counts), 20, folds=of_rows, times=times)


def shuffled(view: Ratings, seed: int = 1) -> Ratings:
    """The same data out of a file with its rows in another order."""
    order = np.random.default_rng(seed).permutation(len(view))
    folds = None if view.folds is None else view.folds[order]
    times = None if view.times is None else view.times[order]
    columns = view.users[order], view.items[order], view.values[order]
    return Ratings.from_triples(*columns, view.n_users, view.n_items, folds=folds, times=times)


def rows_of(view) -> Counter:
    """Every row of a view and how often it is there."""
    columns = (view.items, view.values) if isinstance(view, Ratings) else (view.better, view.worse)
    return Counter(zip(view.users.tolist(), *(column.tolist() for column in columns), strict=True))


def rows_of_users(view, users) -> Counter:
    """The rows of these users (a mask)."""
    return rows_of(view.take(np.flatnonzero(np.asarray(users)[view.users])))


def per_user(view) -> np.ndarray:
    """How many rows each user has."""
    return np.diff(view.indptr)


def cut_or_skip(view, protocol: str, seed: int = 0, repetition: int = 0) -> Split:
    """The split; a draw of data that is too small for it is passed over."""
    try:
        return split(view, protocol, seed=seed, repetition=repetition)
    except UserError:
        assume(False)
        raise


def by_hand() -> Ratings:
    """Nine users with six to ten ratings of twelve items, without a random number."""
    rows = [(user, (5 * user + 7 * i) % 12, 1 + (3 * user + i * i) % 5, 1 + i % 3) for user in range(9) for i in
            range(6 + user % 5)]  # fmt: skip
    users, items, values, folds = np.array(rows).T
    times = 11 * np.arange(len(rows)) % 17  # with ties
    return Ratings.from_triples(users, items, values.astype(float), 9, 12, folds=folds, times=times)
