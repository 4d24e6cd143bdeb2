"""Pairwise stochastic gradient descent on factors (Park and Zhang 2014, sections 3 and 5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Needs, Step
from rankbench.data.views import Comparisons, View
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.solvers import sgd as kernel
from rankbench.methods.factors import Trained, check_rank, seed_of, start, total_loss
from rankbench.methods.folding import alone
from rankbench.methods.losses import CODES, PairLoss
from rankbench.methods.penalties import squared_norm
from rankbench.methods.rotation import Rotation, rotation, user_groups
from rankbench.methods.schedules import METIS, balanced, loads, partition
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Decay, Precision, Rank, StepSize, Weight

Pass = Callable[[int], None]  # visits every comparison once; its argument is the number of updates before
Passes = tuple[Pass, float | None]  # a pass, and the schedule's upper bound on the speed-up by threads


@dataclass(frozen=True)
class SGD(Checked):
    """A vector per user and item, trained by stochastic gradient descent over comparisons.

    min over U, V of sum L(u_i . (v_j - v_k)) + lam/2 (|U|^2 + |V|^2), one comparison at a time. With g
    = L'(margin), each update takes u_i -= eta (g (v_j - v_k) + lam/|Omega_i| u_i), v_j -= eta (g u_i +
    lam/|Omega^j| v_j), v_k -= eta (-g u_i + lam/|Omega^k| v_k), all from the old values, and eta = step
    / (1 + decay t) after t updates. (The report's Algorithms 1 and 2 print the data terms with the
    wrong sign, update v from the new u, and skip the regulariser where the margin is met; these are the
    formulas of its text.) Where eta lam/|Omega| is above 1, as for rare items under a large lam, the old
    vector counts for nothing: with the formula's negative factor it would change its sign and grow without
    end. Users and items that are in no comparison score NaN.

    A schedule decides which thread visits which comparison when. `serial`: users in random order, each one's
    comparisons in random order, and four users take turns. `tournament`: items are in `parts` groups of similar
    load each, and users in half as many; a task is a pair of item groups and a user group, which it visits a few
    users at a time, and the tasks of a round share neither user nor item, so any number of threads gives the same
    bits. `nomad`: a tournament with METIS cutting the item graph into the groups; those of users move from one to
    the next. (In the report two workers race for the items of a comparison between two groups. Here such
    comparisons wait for the round of their two groups, and the bits stay the same.) `hogwild`: each thread takes
    one user at a time, and items have no locks, as in the report's random SGD but user by user. At most half as
    many threads as groups work.

    `precision=single` trains vectors of 32 bits, as other packages do: an update moves half as many bytes, which saves
    about a quarter of its time at rank 64 and none at rank 10. After each pass the model gets the vectors as doubles,
    and the objective is summed in double precision.
    """

    rank: Rank = 10
    lam: Weight = 0.1
    step: StepSize = 0.05
    decay: Decay = 1e-5
    loss: PairLoss = "squared-hinge"
    schedule: Literal["serial", "tournament", "hogwild", "nomad"] = "serial"
    parts: Annotated[int, Limits(low=1, high=128)] = 8
    precision: Precision = "double"
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    version: ClassVar = 4  # on one thread four users take turns

    @property
    def determinism(self) -> Determinism:
        """Exact, except for `hogwild`."""
        return Determinism.RACY if self.schedule == "hogwild" else Determinism.EXACT

    @property
    def needs(self) -> Needs | None:
        """METIS for `nomad`."""
        return METIS if self.schedule == "nomad" else None

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass over all comparisons."""
        threads = checked_threads(threads)
        if len(train):
            check_rank("SGD", self.rank, train.n_users, train.n_items)
        per_user, per_item = np.diff(train.indptr), loads(train.better, train.worse, train.n_items)
        users, items = (start(rng, counts, self.rank) for counts in (per_user, per_item))
        loss, rows = CODES[self.loss], train.rows
        trained = Trained.start(users, items, self.precision)
        model = Factors(users[:, : self.rank], items[:, : self.rank])
        seen = per_user > 0, per_item > 0

        def objective() -> float:
            lost = total_loss(loss, rows, users, items, threads)
            return lost + self.lam / 2 * squared_norm(users[seen[0]], items[seen[1]])

        yield Step(model, objective)
        if not len(train):
            return
        shrinks = self.lam / np.maximum(per_user, 1), self.lam / np.maximum(per_item, 1)
        factors = DescentFactors(
            users=trained.users,
            items=trained.items,
            user_shrink=shrinks[0],
            item_shrink=shrinks[1],
            step=self.step,
            decay=self.decay,
        )
        descent = kernel.Descent(factors=factors, loss=loss)
        one_pass, bound = _PASSES[self.schedule](descent, train, self.parts, rng, threads)
        updates = 0
        while True:
            one_pass(updates)
            updates += len(train)
            trained.update_model()
            yield Step(model, objective, bound=bound)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of the objective with the items' vectors as they are."""
        return alone(model, ratings, CODES[self.loss], 1 / self.lam, checked_threads(threads))


def rotation_of(train: Comparisons, schedule: str, groups: int) -> Rotation:
    """The tasks and rounds of `tournament` or `nomad`."""
    if schedule == "nomad":
        item_groups = partition(train.better, train.worse, train.n_items, groups)
    else:
        item_groups = balanced(loads(train.better, train.worse, train.n_items), groups)
    return rotation(train.rows, user_groups(np.diff(train.indptr), groups), item_groups, groups)


def _serial(descent: kernel.Descent, train: Comparisons, groups: int, rng: np.random.Generator, threads: int) -> Passes:
    """A pass on one thread, user by user."""
    rows = train.rows
    return lambda updates: kernel.serial_pass(descent=descent, comparisons=rows, updates=updates, rng=rng), None


def _hogwild(
    descent: kernel.Descent, train: Comparisons, groups: int, rng: np.random.Generator, threads: int
) -> Passes:
    """A pass in which each thread takes one user at a time, without locks on items."""
    rows, per_user = train.rows, np.diff(train.indptr)

    def one_pass(updates: int) -> None:
        """Visit the users in a new order."""
        order = rng.permutation(train.n_users).astype(np.int32)
        before: Floats = updates + np.concatenate([[0.0], np.cumsum(per_user[order])[:-1]])
        kernel.hogwild_pass(
            descent=descent, comparisons=rows, user_order=order, updates=before, seed=seed_of(rng), threads=threads
        )

    return one_pass, None


def _in_rounds(
    schedule: str, descent: kernel.Descent, train: Comparisons, groups: int, rng: np.random.Generator, threads: int
) -> Passes:
    """A pass in rounds of a schedule; the tasks of a round run in parallel."""
    plan = rotation_of(train, schedule, groups)
    return lambda updates: plan.visit(descent, updates, rng, threads), plan.bound(threads)


_PASSES: dict[str, Callable[..., Passes]] = {
    "serial": _serial,
    "tournament": partial(_in_rounds, "tournament"),
    "hogwild": _hogwild,
    "nomad": partial(_in_rounds, "nomad"),
}
