"""Alternating support vector machines for factors from comparisons (Park et al. 2015; Park and Zhang 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.contract import Determinism, Flags, Float32s, Floats, Int32s, Int64s, Records, Step
from rankbench.data.views import Comparisons
from rankbench.kernels.shared.rows import ComparisonRows
from rankbench.kernels.solvers import altsvm as kernel
from rankbench.methods import schedules
from rankbench.methods.factors import check_rank, seed_of, start, total_loss
from rankbench.methods.losses import CODES
from rankbench.methods.penalties import squared_norm
from rankbench.models import Factors
from rankbench.names import Limits, check, checked_threads
from rankbench.names.ranges import Count, Rank, Weight

_RACES = ("hogwild", "atomic")  # schedules in which threads may write to the same items


@dataclass(frozen=True)
class AltSVM:
    """A vector per user and item, fitted by support vector machines for the items' vectors and the users' in turn.

    min over U, V of sum L(u_i . (v_j - v_k)) + lam/2 (|U|^2 + |V|^2), C = 1/lam. Each half step fixes one side
    and is convex. It computes the other side from its dual variables, a warm start from the previous round,
    and visits every comparison `inner` times by dual coordinate descent. As the fixed side has changed in between,
    all duals of a machine are first scaled by the best power of two: without this the halves diverge for small
    lam and few passes. Every half is a step. Users start with nonnegative entries, so that they are similar and
    the first half finds what they have in common instead of noise.
    (In the authors' published code the hinge falls through into the squared hinge; here they are two
    losses.) Users and items that are in no comparison score NaN.

    The users' half is parallel over users. In the items' half a schedule decides which thread visits which
    comparison when. `tournament`: items are in `groups` of similar load; a task has the comparisons between two groups,
    and the tasks of a round share no item, so any number of threads gives the same bits. `partitioned`: a tournament
    with METIS cutting the item graph into the groups, so that most comparisons are within a group. (In the report there
    is one part per thread, and threads race for the items of comparisons between two parts; here such comparisons wait
    for the round of their two parts.) At most half as many threads as groups are busy. `hogwild`: the tournament
    without rounds; threads never wait, and may overwrite each other (PASSCoDe-Wild). `atomic`: `hogwild` with atomic
    additions (PASSCoDe-Atomic). `random`: every update draws its comparison from all of them, as the authors' code
    does, on one thread; the slowest, kept for comparison.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    loss: Literal["squared-hinge", "hinge"] = "squared-hinge"
    inner: Count = 1
    schedule: Literal["tournament", "partitioned", "hogwild", "atomic", "random"] = "tournament"
    groups: Annotated[int, Limits(low=1, high=128)] = 16
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    @property
    def determinism(self) -> Determinism:
        """Exact, except for the two schedules in which threads may write to the same items."""
        return Determinism.RACY if self.schedule in _RACES else Determinism.EXACT

    def missing(self) -> str | None:
        """The command that installs METIS for `partitioned`; None if it is not needed or is installed."""
        return schedules.missing() if self.schedule == "partitioned" else None

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each half: items, users, items, ..."""
        threads = checked_threads(threads)
        machines = Machines.of(self, train, rng, threads)
        model = machines.model()
        yield Step(model, machines.objective)
        bound = machines.bound() if len(train) else None
        while len(train):
            machines.fit_items(rng)
            yield Step(model, machines.objective, bound=bound)
            machines.fit_users(rng)
            yield Step(model, machines.objective, bound=bound)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The order of work in the items' half: the comparisons task by task with their duals, and the rounds of tasks."""

    records: Records
    starts: Int64s  # where each task starts
    rounds: Int64s  # one row per round: its first task, and the end of its tasks


@dataclass(frozen=True, eq=False)
class Machines:
    """The state of a fit: vectors, the dual variables of both halves, and the items' half in the schedule's order."""

    solver: AltSVM
    train: Comparisons
    users: Floats
    items: Floats
    threads: int
    duals: Float32s  # the users' half, one per comparison
    plan: _Plan  # the items' half

    @classmethod
    def of(cls, solver: AltSVM, train: Comparisons, rng: np.random.Generator, threads: int) -> "Machines":
        """The random start, all dual variables at zero."""
        if len(train):
            check_rank("AltSVM", solver.rank, train.n_users, train.n_items)
        per_user, per_item = np.diff(train.indptr), schedules.loads(train.better, train.worse, train.n_items)
        users, items = np.abs(start(rng, per_user, solver.rank)), start(rng, per_item, solver.rank)
        duals, plan = np.zeros(len(train), np.float32), _planned(solver, train, rng)
        return cls(solver, train, users, items, threads, duals, plan)

    @cached_property
    def rows(self) -> ComparisonRows:
        """The comparisons as the kernels take them."""
        return self.train.rows

    @cached_property
    def vectors(self) -> kernel.Vectors:
        """The vectors of users and items as the kernels take them."""
        return kernel.Vectors(users=self.users, items=self.items)

    @cached_property
    def tasks(self) -> kernel.TaskRecords:
        """The comparisons of the items' half with their duals, as the kernels take them."""
        return kernel.TaskRecords(records=self.plan.records, starts=self.plan.starts)

    @cached_property
    def box(self) -> kernel.Box:
        """The quadratic penalty on a dual variable and its upper bound, as the kernels take them."""
        return kernel.Box(ridge=_ridge(self.solver), upper=_upper(self.solver))

    @cached_property
    def known(self) -> dict[str, Flags]:
        """Masks of the users and the items that are in some comparison."""
        train = self.train
        per_item = schedules.loads(train.better, train.worse, train.n_items)
        return {"users": np.diff(train.indptr) > 0, "items": per_item > 0}

    def model(self) -> Factors:
        """The model with these vectors, which later steps change in place."""
        return Factors(self.users[:, : self.solver.rank], self.items[:, : self.solver.rank])

    def fit_items(self, rng: np.random.Generator) -> None:
        """Update the items' vectors, with the users' vectors fixed."""
        (_draw_items if self.solver.schedule == "random" else _visit_items)(self, rng)

    def fit_users(self, rng: np.random.Generator) -> None:
        """Update the users' vectors, with the items' vectors fixed."""
        (_draw_users if self.solver.schedule == "random" else _visit_users)(self, rng)

    def objective(self) -> float:
        """The objective, the sum of losses plus lam/2 (|U|^2 + |V|^2)."""
        return self.losses() + self.solver.lam / 2 * (self.size("users") + self.size("items"))

    def gap(self, side: str) -> float:
        """The duality gap of the half just fitted, lam (1/2 |w|^2 + C sum L - dual value).

        It holds for one half with the other side's vectors fixed. The joint problem is not convex and has no
        duality gap, so steps report none. The dual value needs the vectors that the duals give: these differ from
        the model's where threads have overwritten each other's items, so the items' are computed anew.
        """
        linear, square = kernel.sums(duals=self.duals if side == "users" else self.plan.records["dual"])
        by_duals = self.size("users") if side == "users" else squared_norm(self._items_by_duals()[self.known["items"]])
        sizes = (self.size(side) + by_duals) / 2
        return self.losses() + self.solver.lam * (sizes + _ridge(self.solver) / 2 * square - linear)

    def _items_by_duals(self) -> Floats:
        """The items' vectors that the duals of the items' half give for these users' vectors."""
        items = np.zeros_like(self.items)
        vectors = kernel.Vectors(users=self.users, items=items)
        kernel.items_from_duals(tasks=self.tasks, rounds=self.plan.rounds, vectors=vectors, threads=self.threads)
        return items

    def losses(self) -> float:
        """The sum of the losses of all comparisons."""
        return total_loss(CODES[self.solver.loss], self.rows, self.users, self.items, self.threads)

    def bound(self) -> float:
        """An upper bound on the speed-up of both halves by threads: no task and no user is split between threads.

        The time of a round of the items' half, or of the users' half, is at least its longest task and an even share.
        """
        tasks, per_user = np.diff(self.plan.starts), np.diff(self.train.indptr)
        if self.solver.schedule == "random":
            rounds = [per_user]
        elif self.solver.schedule in _RACES:
            rounds = [tasks, per_user]
        else:
            rounds = [*(tasks[first:end] for first, end in self.plan.rounds), per_user]
        longest = sum(max(work.max(), work.sum() / self.threads) for work in rounds)
        alone = len(self.train) if self.solver.schedule == "random" else 0
        return float(2 * len(self.train) / (alone + longest))

    def size(self, side: str) -> float:
        """The sum of squares of all users' or items' vectors."""
        block: Floats = {"users": self.users, "items": self.items}[side]
        return squared_norm(block[self.known[side]])


def item_groups(train: Comparisons, schedule: str, groups: int) -> Int32s:
    """The group of every item: a part by METIS under `partitioned`, else a group of similar size in comparisons."""
    if schedule == "partitioned":
        return schedules.partition(train.better, train.worse, train.n_items, groups)
    return schedules.balanced(schedules.loads(train.better, train.worse, train.n_items), groups)


def _ridge(solver: AltSVM) -> float:
    """The quadratic penalty on a dual variable."""
    return solver.lam / 2 if solver.loss == "squared-hinge" else 0.0


def _upper(solver: AltSVM) -> float:
    """The upper bound of a dual variable: none, or C rounded down, so that the bound is at most C."""
    if solver.loss == "squared-hinge":
        return np.inf
    bound = np.float32(1 / solver.lam)
    return float(bound if float(bound) <= 1 / solver.lam else np.nextafter(bound, np.float32(0)))


def _planned(solver: AltSVM, train: Comparisons, rng: np.random.Generator) -> _Plan:
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


def _visit_items(machines: Machines, rng: np.random.Generator) -> None:
    """Compute V from its duals, then pass over all comparisons, in rounds of random order or without rounds."""
    _rebuild_items(machines)
    races = machines.solver.schedule in _RACES and machines.threads > 1
    for _ in range(machines.solver.inner):
        rounds = np.array([[0, len(machines.plan.starts) - 1]]) if races else rng.permutation(machines.plan.rounds)
        kernel.items_pass(
            box=machines.box,
            tasks=machines.tasks,
            rounds=rounds,
            vectors=machines.vectors,
            seed=seed_of(rng),
            atomic=races and machines.solver.schedule == "atomic",
            threads=machines.threads,
        )


def _rebuild_items(machines: Machines) -> None:
    """Compute V from its duals, all scaled by the best power of two for the new U."""
    duals, items = machines.plan.records["dual"], machines.items
    items[machines.known["items"]] = 0.0
    linear, square = kernel.items_from_duals(
        tasks=machines.tasks, rounds=machines.plan.rounds, vectors=machines.vectors, threads=machines.threads
    ).sum(axis=0)
    size = machines.size("items")
    exponent = kernel.scale_exponent(box=machines.box, linear=linear, square=square, size=size)
    if exponent:
        np.ldexp(duals, exponent, out=duals)
        np.ldexp(items, exponent, out=items)


def _visit_users(machines: Machines, rng: np.random.Generator) -> None:
    """Compute each user's vector from its duals, then pass over the user's comparisons."""
    _pass_over_users(machines, machines.solver.inner, seed_of(rng))


def _pass_over_users(machines: Machines, passes: int, seed: int) -> None:
    """Compute each user's vector from its duals, then pass over the user's comparisons `passes` times."""
    kernel.users_pass(
        box=machines.box,
        comparisons=machines.rows,
        duals=machines.duals,
        vectors=machines.vectors,
        passes=passes,
        seed=seed,
        threads=machines.threads,
    )


def _draw_items(machines: Machines, rng: np.random.Generator) -> None:
    """Compute V from its duals, then update by as many randomly drawn comparisons as there are."""
    _rebuild_items(machines)
    for _ in range(machines.solver.inner):
        kernel.drawn_items_pass(box=machines.box, tasks=machines.tasks, vectors=machines.vectors, rng=rng)


def _draw_users(machines: Machines, rng: np.random.Generator) -> None:
    """Compute U from its duals, then update by as many randomly drawn comparisons as there are."""
    _pass_over_users(machines, passes=0, seed=0)
    for _ in range(machines.solver.inner):
        kernel.drawn_users_pass(
            box=machines.box, tasks=machines.tasks, duals=machines.duals, vectors=machines.vectors, rng=rng
        )
