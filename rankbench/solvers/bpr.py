"""Bayesian personalised ranking from implicit feedback (Rendle, Freudenthaler, Gantner and Schmidt-Thieme 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.arrays.mapped import empty
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Floats, Int32s, Int64s, Ints, Model, Step
from rankbench.data.views import Ratings
from rankbench.kernels.methods import fold_in
from rankbench.kernels.methods import negatives as kernel
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.shared.rows import ComparisonRows, Pattern
from rankbench.kernels.solvers import sgd
from rankbench.methods.factors import Trained, check_rank, seed_of, start, total_loss, zero_rows
from rankbench.methods.folding import check_curved, own, vectors_and_numbers
from rankbench.methods.losses import CODES, PairLoss
from rankbench.methods.rotation import rotation, user_groups
from rankbench.methods.schedules import balanced
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Decay, Least, Precision, Rank, StepSize, Weight

_PORTIONS = 8  # of a pass; before each, `warp` draws negatives by the scores that the one before has left


@dataclass(frozen=True)
class BPR(Checked):
    """A vector per user and item, trained so that items a user chose score above items the user did not choose.

    A rating is a positive if it is at least `least`; without `least` every rating is a positive, with any
    value. For each positive j of user i a negative k is drawn from all items of the catalogue that are not a positive
    of i, rated or not; `negatives` says how. With x = u_i . (v_j - v_k) an update is a gradient step on
    -ln sigma(x) + lam/2 (|u_i|^2 + |v_j|^2 + |v_k|^2), as in the paper's figure 4, computed from the old
    values, with learning rate step / (1 + decay t) after t updates. A pass visits every positive once (the paper
    draws them with replacement) and draws new negatives.

    `negatives`: `uniform` draws all alike; `popular` an item as often as it has positives (Gantner et al. 2012); `warp`
    uniformly until one scores above the positive less 1, and multiplies the slope of the loss by
    log(1 + m/t) / log(1 + m) if it was the t-th draw from m items, as m/t estimates how many stand above the positive
    (Weston et al. 2011); after 30 draws in vain the vectors only shrink. So the head of the list counts most. A pass is
    in eight random portions then, whose negatives are drawn by the scores that the portion before has left.

    The bits are the same for any number of threads: every user has their own random generator for negatives, and the
    drawn comparisons are visited in rounds of tasks that share neither user nor item. The objective is an estimate of
    the paper's BPR-Opt, a mean over negatives, from one negative per positive that is drawn at the start and kept: as
    `negatives` says, but uniformly under `warp`. Users without a rating score NaN. Users without a positive, and users
    with every item as a positive, score 0 for all items. `precision=single` trains vectors of 32 bits, as other
    packages do, which takes less time at high ranks; after each pass the model gets them as doubles.

    `loss` puts another function of x in the place of -ln sigma(x), which is the logistic loss.

    With `biases` each item has a number b_j besides its vector, x = u_i . (v_j - v_k) + b_j - b_k, with the same
    penalty and a start of 0; it holds how popular an item is. The model's vectors are then (u_i, 1) and (v_j, b_j), and
    users with a rating but no positive score b_j.
    """

    rank: Rank = 10
    lam: Weight = 0.01
    step: StepSize = 0.05
    decay: Decay = 0.0
    least: Least = None
    parts: Annotated[int, Limits(low=1, high=128)] = 8
    precision: Precision = "double"
    biases: Annotated[bool, AddedLater()] = False
    negatives: Annotated[Literal["uniform", "popular", "warp"], AddedLater()] = "uniform"
    loss: Annotated[PairLoss, AddedLater()] = "logistic"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 3  # larger tasks, which visit a few users at a time

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass over all positives."""
        threads = checked_threads(threads)
        indptr, positives = positives_of(train, self.least)
        per_user = np.diff(indptr)
        if len(positives):
            check_rank("BPR", self.rank, train.n_users, train.n_items)
        users, items = self._start(train, per_user, rng)
        trained, width = Trained.start(users, items, self.precision), self.rank + self.biases
        model = Factors(users[:, :width], items[:, :width])
        sampler = _Sampler(self.negatives, indptr, positives, train.n_items, rng, threads)
        kept = sampler.negatives(np.empty(len(positives), np.int32))

        def objective() -> float:
            pairs = ComparisonRows(indptr=indptr, better=positives, worse=kept)
            lost = total_loss(CODES[self.loss], pairs, users, items, threads)
            penalized = users[:, : self.rank] if self.biases else users
            return float(lost + self.lam / 2 * _size(penalized, items, per_user, (positives, kept)))

        yield Step(model, objective)
        factors = DescentFactors(
            users=trained.users,
            items=trained.items,
            user_shrink=np.full(train.n_users, self.lam),
            item_shrink=np.full(train.n_items, self.lam),
            step=self.step,
            decay=self.decay,
            held=self.rank if self.biases else -1,
        )
        descent = sgd.Descent(factors=factors, loss=CODES[self.loss])
        item_load = np.bincount(positives, minlength=train.n_items) + len(positives) // train.n_items
        groups = user_groups(per_user, self.parts), balanced(item_load, self.parts)
        updates, room = 0, empty(3 * len(positives), np.int32)  # for all passes: new memory takes longer
        while len(positives):
            for rows, weights in sampler.of_a_pass(factors):
                plan = rotation(rows, *groups, self.parts, weights, room)
                plan.visit(descent, updates, rng, threads)
                updates += len(plan.users)
            trained.update_model()
            yield Step(model, objective)

    @one_blas_thread()
    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each with the vector that is best with the items of the model as they are.

        The best vector has the least mean loss over all pairs of a positive and any other item of the catalogue, all
        alike, plus lam/2 |u|^2, whatever `negatives` says.
        """
        threads = checked_threads(threads)
        check_curved(CODES[self.loss])
        items, offsets = vectors_and_numbers(model, ratings, self.rank, self.biases)
        indptr, positives = positives_of(ratings, self.least)
        users = zero_rows(ratings.n_users, self.rank)
        fold_in.rivals(
            positives=Pattern(indptr=indptr, columns=positives),
            items=items,
            offsets=offsets,
            loss=CODES[self.loss],
            lam=self.lam,
            users=users,
            threads=threads,
        )
        users[np.diff(ratings.indptr) == 0] = np.nan
        vectors = _with_column(users, self.rank, 1.0) if self.biases else users
        return Factors(vectors[:, : self.rank + self.biases], own(model, Factors).items)

    def _start(self, train: Ratings, per_user: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Random vectors, and zeros for users without a positive; with biases a column of ones, and one of zeros."""
        users, items = start(rng, per_user, self.rank), start(rng, np.ones(train.n_items, int), self.rank)
        users[(per_user == 0) & (np.diff(train.indptr) > 0)] = 0
        if self.biases:
            return _with_column(users, self.rank, 1.0), _with_column(items, self.rank, 0.0)
        return users, items


def positives_of(train: Ratings, least: float | None) -> tuple[Int64s, Int32s]:
    """Each user's positives in CSR form, ascending; a user with all items has no negatives, and gets no positives."""
    kept = train.at_least(least)
    some = (np.diff(kept.indptr) < train.n_items)[kept.users]
    kept = kept if some.all() else kept.where(some)
    return kept.indptr, kept.items


def _with_column(rows: Floats, rank: int, value: float) -> Floats:
    """The rows with this value behind their first `rank` numbers, padded for the kernels; rows of NaN stay NaN."""
    wide = zero_rows(len(rows), rank + 1)
    wide[:, :rank] = rows[:, :rank]
    wide[:, rank] = np.where(np.isnan(rows[:, 0]), np.nan, value)
    return wide


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Draws negatives for the positives of a data set."""

    how: str
    indptr: Int64s
    positives: Int32s
    n_items: int
    rng: np.random.Generator
    threads: int

    @cached_property
    def rows(self) -> Pattern:
        """Each user's positives as the kernels take them."""
        return Pattern(indptr=self.indptr, columns=self.positives)

    @cached_property
    def room(self) -> Int32s:
        """Where the negatives of a pass are drawn, in place of those of the pass before."""
        return np.empty(len(self.positives), np.int32)

    def negatives(self, out: Int32s) -> Int32s:
        """A random negative for each positive, without regard to scores."""
        kernel.draw_negatives(
            positives=self.rows,
            n_items=self.n_items,
            popular=self.how == "popular",
            seed=seed_of(self.rng),
            out=out,
            threads=self.threads,
        )
        return out

    def of_a_pass(self, factors: DescentFactors) -> Iterator[tuple[ComparisonRows, Floats | None]]:
        """Every positive with a new negative, in portions that are visited one after the other, and their weights."""
        if self.how != "warp":
            yield ComparisonRows(indptr=self.indptr, better=self.positives, worse=self.negatives(self.room)), None
            return
        portions = self.rng.integers(_PORTIONS, size=len(self.positives), dtype=np.uint8)
        negatives, weights = np.empty(len(portions), np.int32), np.empty(len(portions))
        for number in np.flatnonzero(np.bincount(portions)):
            wanted, seed = portions == number, seed_of(self.rng)
            kernel.draw_violators(
                positives=self.rows,
                factors=factors,
                wanted=wanted.view(np.uint8),
                seed=seed,
                out=negatives,
                weights=weights,
                threads=self.threads,
            )
            before = np.concatenate([[0], np.cumsum(wanted)])
            pairs = ComparisonRows(indptr=before[self.indptr], better=self.positives[wanted], worse=negatives[wanted])
            yield pairs, weights[wanted]


def _size(users: Floats, items: Floats, per_user: Ints, columns: tuple[Ints, ...]) -> float:
    """The sum over updates of the squared norms that the penalty contains: the user's and its items' vectors."""
    of_users, of_items = (np.square(block).sum(axis=1) for block in (users, items))
    known = per_user > 0
    return float(per_user[known] @ of_users[known] + sum(of_items[column].sum() for column in columns))
