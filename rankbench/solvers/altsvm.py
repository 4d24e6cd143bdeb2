"""Alternating support vector machines for factors from comparisons (Park et al. 2015; Park and Zhang 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.arrays.mapped import SHARE, zeros
from rankbench.core.contract import (
    Determinism,
    Executor,
    Floats,
    Int32s,
    Int64s,
    Model,
    Needs,
    Records,
    Step,
    Sums,
)
from rankbench.data.views import Comparisons, View
from rankbench.distributed.cutting import edges_of, parts_of
from rankbench.distributed.in_process import steps_in_process
from rankbench.kernels.solvers import altsvm as kernel
from rankbench.methods import schedules
from rankbench.methods.factors import check_rank, seed_of, start, streams_of, total_loss, zero_rows
from rankbench.methods.folding import alone
from rankbench.methods.losses import BY_NAME, CODES, DUALS, DualLoss
from rankbench.methods.penalties import squared_norm
from rankbench.models import Factors, ScatteredFactors, ScatteredUsers
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Partitions, Rank, Weight

_RACES = ("hogwild", "atomic")  # schedules in which threads may write to the same items
_FIRST_LOOK = 4  # the round in which vectors are first compared with zeros: the first ones are often worse in passing
_HALVINGS = 10  # of vectors that are worse than zeros: after so many they are nearly zeros


@dataclass(frozen=True)
class AltSVM(Checked):
    """A vector per user and item, fitted by support vector machines for the items' vectors and the users' in turn.

    min over U, V of sum L(u_i . (v_j - v_k)) + lam/2 (|U|^2 + |V|^2), C = 1/lam. Each half step fixes one side
    and is convex. It computes the other side from its dual variables, a warm start from the previous round,
    and visits every comparison `inner` times by dual coordinate descent. As the fixed side has changed in between,
    all duals of a machine are first scaled by the best power of two: without this the halves diverge for small
    lam and few passes. Even so, few passes at a small lam may leave vectors that are worse than zeros, for ever where
    comparisons contradict each other. So the items' vectors are compared with zeros in the rounds 4, 8, 16, ... if
    their duals no longer suited the users' vectors; once they were worse, both sides are compared after each half. What
    is worse than zeros is halved until it is not; its duals stay as they are. Every half is a step. Users start with
    nonnegative entries, so that they are similar and the first half finds what they have in common instead of noise.
    (In the authors' published code the hinge falls through into the squared hinge; here they are two
    losses.) Users and items that are in no comparison score NaN.

    The users' half is parallel over users. In the items' half a schedule decides which thread visits which
    comparison when. `tournament`: items are in `groups` of similar load; a task has the comparisons between two groups,
    and the tasks of a round share no item, so any number of threads gives the same bits. `partitioned`: a tournament
    with METIS cutting the item graph into the groups, so that most comparisons are within a group. (In the report there
    is one group per thread, and threads race for the items of comparisons between two groups; here these wait for the
    round of their two groups.) At most half as many threads as groups are busy. `hogwild`: the tournament
    without rounds; threads never wait, and may overwrite each other (PASSCoDe-Wild). `atomic`: `hogwild` with atomic
    additions (PASSCoDe-Atomic). `random`: every update draws its comparison from all of them, as the authors' code
    does, on one thread; the slowest, kept for comparison.

    With `partitions` above 1 the users are cut into P parts, which may be on several machines. A users' half is the
    same. In an items' half every part has the duals of its users' comparisons, and V is the sum of what the duals of
    all parts give. In each of the `inner` passes a part starts from the same V and changes its own duals as if every
    change of V that they make were P times as large; then the changes of all parts are added (CoCoA+ with gamma = 1 and
    sigma' = P: Ma et al., ICML 2015; Jaggi et al., NIPS 2014). No pass lowers the dual objective: as
    |w + sum z_p|^2 <= |w|^2 + 2 w . sum z_p + P sum |z_p|^2, it rises by at least what the parts' own objectives rise
    by. The price is shorter steps, so that larger P need more passes.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    loss: DualLoss = "squared-hinge"
    inner: Count = 1
    schedule: Literal["tournament", "partitioned", "hogwild", "atomic", "random"] = "tournament"
    groups: Annotated[int, Limits(low=1, high=128)] = 16
    partitions: Partitions = 1
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    version: ClassVar = 3  # vectors that are worse than zeros are halved

    @property
    def determinism(self) -> Determinism:
        """Exact, except for the two schedules in which threads may write to the same items."""
        return Determinism.RACY if self.schedule in _RACES else Determinism.EXACT

    @property
    def needs(self) -> Needs | None:
        """METIS for `partitioned`."""
        return schedules.METIS if self.schedule == "partitioned" else None

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each half: items, users, items, ..."""
        return steps_in_process(self, train, rng, threads)

    def steps_on(
        self, executor: Executor, train: Comparisons, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """As `steps`, with the users, their vectors and both halves' duals in parts kept by the executor."""
        machines = Machines(self, executor, train, rng, checked_threads(threads))
        yield Step(machines.model(), machines.objective)
        bound = machines.bound()
        for _ in machines.halves():
            yield Step(machines.model(), machines.objective, bound=bound)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of their half with the items' vectors as they are."""
        return alone(model, ratings, CODES[self.loss], 1 / self.lam, checked_threads(threads))


class Machines:
    """The support vector machines of both halves: the items' vectors are here, the users' in parts with all duals."""

    def __init__(
        self, solver: AltSVM, executor: Executor, train: Comparisons, rng: np.random.Generator, threads: int
    ) -> None:
        if len(train):
            check_rank("AltSVM", solver.rank, train.n_users, train.n_items)
        self.solver, self.executor, self.train = solver, executor, train
        self.edges = edges_of(train, solver.partitions, "AltSVM")
        views, site = parts_of(train, self.edges), Site(solver, train.n_items, threads)
        executor.place(Part, list(zip(views, streams_of(rng, len(views)), strict=True)), site)
        per_item = schedules.loads(train.better, train.worse, train.n_items)
        self.known = per_item > 0
        self.items = np.where(self.known[:, None], start(rng, per_item, solver.rank), 0.0)
        executor.total(Part.plan_items)

    def halves(self) -> Iterator[None]:
        """Fit the items' vectors, the users', the items', ... without end, and halve what is worse than zeros.

        Whether it is costs a pass over the comparisons, so that at first only a few rounds are looked at.
        """
        stale = trouble = False
        for number in count(1) if len(self.train) else ():
            stale = self.fit_items() or stale
            if trouble or (stale and number >= _FIRST_LOOK and number & (number - 1) == 0):
                trouble, stale = self.halved("items") or trouble, False
            yield
            self.fit_users()
            if trouble:
                self.halved("users")
            yield

    def halved(self, side: str) -> bool:
        """Whether the vectors of a side were worse than zeros; they are halved until they are not, or nearly zeros."""
        of_zeros = len(self.train) * float(BY_NAME[self.solver.loss].value(np.zeros(())))
        for halvings in range(_HALVINGS):
            if self.losses() + self.solver.lam / 2 * self.size(side) <= of_zeros:
                return halvings > 0
            if side == "users":
                self.executor.total(Part.halve)
            else:
                self.items = self.items / 2
        return True

    def fit_items(self) -> bool:
        """Compute V from its duals, then visit every comparison; whether the duals were stale (`_scaling`)."""
        self.items, linear, square = self.executor.total(Part.items_from_duals)
        exponent, stale = _scaling(self.solver, linear, square, self.size("items"))
        if exponent:
            self.executor.total(Part.scale_duals, exponent)
            self.items = np.ldexp(self.items, exponent)
        for _ in range(self.solver.inner):
            self.visit_items()
        return stale

    def visit_items(self) -> None:
        """Let all parts change their duals in a pass over their comparisons, and add the changes of V that these make.

        Each of P parts gives V with P times its own changes, so V with the changes of all is the mean.
        """
        self.items = self.executor.total(Part.visit_items, self.items)[0] / self.solver.partitions

    def fit_users(self) -> None:
        """Update the users' vectors, part by part."""
        self.executor.total(Part.fit_users, self.items)

    def model(self) -> Model:
        """The model with these items' vectors, and the users' vectors in the parts."""
        items = np.where(self.known[:, None], self.items, np.nan)[:, : self.solver.rank]
        return ScatteredFactors(ScatteredUsers(self.executor, self.edges, Part.shown, self.solver.rank), items)

    def objective(self) -> float:
        """The objective, the sum of losses plus lam/2 (|U|^2 + |V|^2)."""
        return self.losses() + self.solver.lam / 2 * (self.size("users") + self.size("items"))

    def losses(self) -> float:
        """The sum of the losses of all comparisons."""
        return float(self.executor.total(Part.losses, self.items)[0])

    def size(self, side: str) -> float:
        """The sum of squares of all users' or items' vectors."""
        if side == "users":
            return float(self.executor.total(Part.size)[0])
        return squared_norm(self.items[self.known])

    def dual_value(self, side: str) -> float:
        """The dual objective of a half, times lam: no pass lowers it."""
        size, (linear, square) = self.size("users"), self.executor.total(Part.sums_of_duals, side)
        if side == "items":
            size = squared_norm(self.executor.total(Part.items_from_duals)[0])
        return float(self.solver.lam * (linear - size / 2 - _ridge(self.solver) / 2 * square))

    def gap(self, side: str) -> float:
        """The duality gap of the half just fitted, lam (1/2 |w|^2 + C sum L - dual value).

        It holds for one half with the other side's vectors fixed. The joint problem is not convex and has no
        duality gap, so steps report none. The dual value needs the vectors that the duals give: these differ from
        the model's where threads have overwritten each other's items, so the items' are computed anew.
        """
        return self.losses() + self.solver.lam / 2 * self.size(side) - self.dual_value(side)

    def bound(self) -> float | None:
        """An upper bound on the speed-up of both halves by threads; None with several parts or no comparison."""
        return self.executor.ask(Part.bound, {0: ()})[0] if self.solver.partitions == 1 and len(self.train) else None


@dataclass(frozen=True, eq=False)
class _Plan:
    """The order of work in the items' half: the comparisons task by task with their duals, and the rounds of tasks."""

    records: Records
    starts: Int64s  # where each task starts
    rounds: Int64s  # one row per round: its first task, and the end of its tasks


@dataclass(frozen=True, eq=False)
class Site:
    """What all parts in one process share."""

    solver: AltSVM
    n_items: int
    threads: int

    @cached_property
    def items(self) -> Floats:
        """Items' vectors to work on, by one part after another; no part expects to find there what it left."""
        return zero_rows(self.n_items, self.solver.rank)


class Part:
    """The comparisons of some users with these users' vectors and the dual variables of both halves.

    What its methods return, other than `bound` and `shown`, is summed over the parts.
    """

    def __init__(self, train: Comparisons, rng: np.random.Generator, site: Site) -> None:
        self.solver, self.train, self.rng, self.threads = site.solver, train, rng, site.threads
        self.per_user = np.diff(train.indptr)
        self.users, self.items = np.abs(start(rng, self.per_user, site.solver.rank)), site.items
        share = SHARE / site.solver.partitions  # all parts may be in one process
        self.duals = zeros(len(train), np.float32, share)  # the users' half, one per comparison
        self.box = kernel.Box(ridge=_ridge(site.solver), upper=_upper(site.solver))
        self.plan: _Plan  # the items' half, with its duals
        self.tasks: kernel.TaskRecords  # the same as the kernels take it

    @cached_property
    def vectors(self) -> kernel.Vectors:
        """The vectors of users and items as the kernels take them."""
        return kernel.Vectors(users=self.users, items=self.items)

    def plan_items(self) -> Sums:
        """Put the comparisons in the order of the schedule, with the items' duals all zero; nothing is summed."""
        self.plan = planned(self.solver, self.train, self.rng)
        self.tasks = kernel.TaskRecords(records=self.plan.records, starts=self.plan.starts)
        return ()

    def items_from_duals(self) -> Sums:
        """The share of V that the duals of the items' half give, and the sums of these duals and of their squares."""
        self.items[:] = 0.0
        linear, square = kernel.items_from_duals(
            tasks=self.tasks, rounds=self.plan.rounds, vectors=self.vectors, threads=self.threads
        ).sum(axis=0)
        return self.items.copy(), float(linear), float(square)

    def scale_duals(self, exponent: int) -> Sums:
        """Scale the duals of the items' half by a power of two; nothing is summed."""
        duals = self.plan.records["dual"]
        np.ldexp(duals, exponent, out=duals)
        return ()

    def visit_items(self, items: Floats) -> Sums:
        """Change the duals of the items' half in a pass over the comparisons; V with P times the change they make.

        The kernel changes V by the whole of what the duals change. With P parts the users' vectors are sqrt(P) times as
        long and the items' as much shorter: then every margin is the same, and the change of V counts P times.
        """
        root, vectors = np.sqrt(self.solver.partitions), self.vectors
        self.items[:] = items / root
        if self.solver.partitions > 1:
            vectors = kernel.Vectors(users=self.users * root, items=self.items)
        if len(self.train):
            self._pass_over_items(vectors)
        return (self.items * root,)

    def fit_users(self, items: Floats) -> Sums:
        """Compute each user's vector from its duals, then visit its comparisons; nothing is summed."""
        self.items[:] = items
        drawn = self.solver.schedule == "random"
        if len(self.train):
            passes, seed = (0, 0) if drawn else (self.solver.inner, seed_of(self.rng))
            kernel.users_pass(
                box=self.box,
                comparisons=self.train.rows,
                duals=self.duals,
                vectors=self.vectors,
                passes=passes,
                seed=seed,
                threads=self.threads,
            )
            for _ in range(self.solver.inner if drawn else 0):
                kernel.drawn_users_pass(
                    box=self.box, tasks=self.tasks, duals=self.duals, vectors=self.vectors, rng=self.rng
                )
        return ()

    def halve(self) -> Sums:
        """Halve the users' vectors; nothing is summed."""
        self.users /= 2
        return ()

    def losses(self, items: Floats) -> Sums:
        """The sum of the losses."""
        self.items[:] = items
        return (total_loss(CODES[self.solver.loss], self.train.rows, self.users, self.items, self.threads),)

    def size(self) -> Sums:
        """The sum of the squares of the users' vectors."""
        return (squared_norm(self.users[self.per_user > 0]),)

    def sums_of_duals(self, side: str) -> Sums:
        """The duals of a half and their squares, each summed."""
        return kernel.sums(duals=self.duals if side == "users" else self.plan.records["dual"])

    def shown(self) -> Floats:
        """The vectors of the users as the model has them."""
        return self.users[:, : self.solver.rank]

    def bound(self) -> float:
        """An upper bound on the speed-up of both halves by threads: no task and no user is split between threads.

        The time of a round of the items' half, or of the users' half, is at least its longest task and an even share.
        """
        tasks = np.diff(self.plan.starts)
        if self.solver.schedule == "random":
            rounds = [self.per_user]
        elif self.solver.schedule in _RACES:
            rounds = [tasks, self.per_user]
        else:
            rounds = [*(tasks[first:end] for first, end in self.plan.rounds), self.per_user]
        longest = sum(max(work.max(), work.sum() / self.threads) for work in rounds)
        alone = len(self.train) if self.solver.schedule == "random" else 0
        return float(2 * len(self.train) / (alone + longest))

    def _pass_over_items(self, vectors: kernel.Vectors) -> None:
        """Visit every comparison, in rounds of random order or without rounds, or as many randomly drawn ones."""
        if self.solver.schedule == "random":
            kernel.drawn_items_pass(box=self.box, tasks=self.tasks, vectors=vectors, rng=self.rng)
            return
        races = self.solver.schedule in _RACES and self.threads > 1
        rounds = np.array([[0, len(self.plan.starts) - 1]]) if races else self.rng.permutation(self.plan.rounds)
        kernel.items_pass(
            box=self.box,
            tasks=self.tasks,
            rounds=rounds,
            vectors=vectors,
            seed=seed_of(self.rng),
            atomic=races and self.solver.schedule == "atomic",
            threads=self.threads,
        )


def item_groups(train: Comparisons, schedule: str, groups: int) -> Int32s:
    """The group of every item: cut by METIS under `partitioned`, else a group of similar size in comparisons."""
    if schedule == "partitioned":
        return schedules.partition(train.better, train.worse, train.n_items, groups)
    return schedules.balanced(schedules.loads(train.better, train.worse, train.n_items), groups)


def _ridge(solver: AltSVM) -> float:
    """The quadratic penalty on a dual variable."""
    return solver.lam * DUALS[solver.loss].ridge


def _upper(solver: AltSVM) -> float:
    """The upper bound of a dual variable: none, or that of the loss times C, rounded down to at most this."""
    exact = DUALS[solver.loss].upper / solver.lam
    bound = np.float32(exact)
    return float(bound if float(bound) <= exact else np.nextafter(bound, np.float32(0)))


def _scaling(solver: AltSVM, linear: float, square: float, size: float) -> tuple[int, bool]:
    """The exponent of the power of two that scales the items' duals best, and whether they are stale.

    They are if without an upper bound it were not 0: the duals of the last round do not suit the new U.
    """
    boxes = (kernel.Box(ridge=_ridge(solver), upper=upper) for upper in (_upper(solver), np.inf))
    within, without = (kernel.scale_exponent(box=box, linear=linear, square=square, size=size) for box in boxes)
    return within, without != 0


def planned(solver: AltSVM, train: Comparisons, rng: np.random.Generator) -> _Plan:
    """The records in the order of the schedule, all duals zero, and the tasks of each round."""
    order = rng.permutation(train.n_users).astype(np.int32)
    if solver.schedule == "random":  # records are in the order of the users' duals
        order, groups, pair_of = np.sort(order), np.zeros(train.n_items, np.int32), np.zeros((1, 1), np.int32)
        rounds = np.array([[0, 1]])
    else:
        groups, pair_of = item_groups(train, solver.schedule, solver.groups), schedules.tasks(solver.groups)
        ends = np.cumsum([0, *map(len, schedules.rounds(solver.groups))])
        rounds = np.stack([ends[:-1], ends[1:]], axis=1)
    records, starts = kernel.records_of(
        comparisons=train.rows, user_order=order, item_group=groups, pair_of=pair_of, n_tasks=int(rounds[-1, 1])
    )
    return _Plan(records, starts, rounds)
