"""Alternating support vector machines for factors from comparisons (Park et al. 2015; Park and Zhang 2014)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import (
    Determinism,
    Executor,
    Flags,
    Float32s,
    Floats,
    Int32s,
    Int64s,
    Model,
    Records,
    Step,
    Sums,
)
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, View
from rankbench.distributed.cutting import edges_of, parts_of
from rankbench.distributed.in_process import steps_in_process
from rankbench.kernels.shared.rows import ComparisonRows
from rankbench.kernels.solvers import altsvm as kernel
from rankbench.methods import schedules
from rankbench.methods.factors import check_rank, seed_of, start, total_loss, zero_rows
from rankbench.methods.folding import alone
from rankbench.methods.losses import CODES
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
    loss: Literal["squared-hinge", "hinge"] = "squared-hinge"
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

    def missing(self) -> str | None:
        """The command that installs METIS for `partitioned`; None if it is not needed or is installed."""
        return schedules.missing() if self.schedule == "partitioned" else None

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each half: items, users, items, ..."""
        if self.partitions > 1:
            yield from steps_in_process(self, train, rng, threads)
            return
        threads = checked_threads(threads)
        machines = Machines.of(self, train, rng, threads)
        model = machines.model()
        yield Step(model, machines.objective)
        bound = machines.bound() if len(train) else None
        for _ in _halves(machines, partial(machines.fit_items, rng), partial(machines.fit_users, rng)):
            yield Step(model, machines.objective, bound=bound)

    def steps_on(
        self, executor: Executor, train: Comparisons, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """As `steps`, with the users, their vectors and both halves' duals in parts kept by the executor."""
        machines = SpreadMachines(self, executor, train, rng, checked_threads(threads))
        yield Step(machines.model(), machines.objective)
        for _ in _halves(machines, machines.fit_items, machines.fit_users):
            yield Step(machines.model(), machines.objective)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of their half with the items' vectors as they are."""
        if self.loss != "squared-hinge":
            problem = "fold_in takes Newton steps, which the hinge has no curvature for"
            raise UserError(problem, subject="AltSVM", remedy="train with loss=squared-hinge")
        return alone(model, ratings, CODES[self.loss], 1 / self.lam, checked_threads(threads))


def _halves(
    machines: "Machines | SpreadMachines", fit_items: Callable[[], bool], fit_users: Callable[[], None]
) -> Iterator[None]:
    """Fit the items' vectors, the users', the items', ... without end, and halve what is worse than zeros.

    Whether it is costs a pass over the comparisons, so that at first only a few rounds are looked at.
    """
    stale = trouble = False
    for number in count(1) if len(machines.train) else ():
        stale = fit_items() or stale
        if trouble or (stale and number >= _FIRST_LOOK and number & (number - 1) == 0):
            trouble, stale = _halved(machines, "items") or trouble, False
        yield
        fit_users()
        if trouble:
            _halved(machines, "users")
        yield


def _halved(machines: "Machines | SpreadMachines", side: str) -> bool:
    """Whether the vectors of a side were worse than zeros; they are halved until they are not, or are nearly zeros.

    Of zeros every comparison has the loss 1, with either loss.
    """
    for halvings in range(_HALVINGS):
        if machines.losses() + machines.solver.lam / 2 * machines.size(side) <= len(machines.train):
            return halvings > 0
        machines.halve(side)
    return True


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

    def fit_items(self, rng: np.random.Generator) -> bool:
        """Update the items' vectors, with the users' vectors fixed; whether their duals were stale (`_scaling`)."""
        return (_draw_items if self.solver.schedule == "random" else _visit_items)(self, rng)

    def fit_users(self, rng: np.random.Generator) -> None:
        """Update the users' vectors, with the items' vectors fixed."""
        (_draw_users if self.solver.schedule == "random" else _visit_users)(self, rng)

    def halve(self, side: str) -> None:
        """Halve the vectors of a side."""
        block = self.users if side == "users" else self.items
        block /= 2

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
    """The group of every item: cut by METIS under `partitioned`, else a group of similar size in comparisons."""
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


def _scaling(solver: AltSVM, linear: float, square: float, size: float) -> tuple[int, bool]:
    """The exponent of the power of two that scales the items' duals best, and whether they are stale.

    They are if without an upper bound it were not 0: the duals of the last round do not suit the new U.
    """
    boxes = (kernel.Box(ridge=_ridge(solver), upper=upper) for upper in (_upper(solver), np.inf))
    within, without = (kernel.scale_exponent(box=box, linear=linear, square=square, size=size) for box in boxes)
    return within, without != 0


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


def _visit_items(machines: Machines, rng: np.random.Generator) -> bool:
    """Compute V from its duals, then pass over all comparisons, in rounds of random order or without rounds."""
    stale = _rebuild_items(machines)
    for _ in range(machines.solver.inner):
        _pass_over_items(machines, machines.vectors, rng)
    return stale


def _pass_over_items(machines: Machines, vectors: kernel.Vectors, rng: np.random.Generator) -> None:
    """Update the items' vectors by a visit to every comparison, in rounds of random order or without rounds."""
    races = machines.solver.schedule in _RACES and machines.threads > 1
    rounds = np.array([[0, len(machines.plan.starts) - 1]]) if races else rng.permutation(machines.plan.rounds)
    kernel.items_pass(
        box=machines.box,
        tasks=machines.tasks,
        rounds=rounds,
        vectors=vectors,
        seed=seed_of(rng),
        atomic=races and machines.solver.schedule == "atomic",
        threads=machines.threads,
    )


def _rebuild_items(machines: Machines) -> bool:
    """Compute V from its duals, all scaled by the best power of two for the new U; whether they were stale."""
    duals, items = machines.plan.records["dual"], machines.items
    items[machines.known["items"]] = 0.0
    linear, square = kernel.items_from_duals(
        tasks=machines.tasks, rounds=machines.plan.rounds, vectors=machines.vectors, threads=machines.threads
    ).sum(axis=0)
    exponent, stale = _scaling(machines.solver, linear, square, machines.size("items"))
    if exponent:
        np.ldexp(duals, exponent, out=duals)
        np.ldexp(items, exponent, out=items)
    return stale


def _visit_users(machines: Machines, rng: np.random.Generator) -> None:
    """Compute each user's vector from its duals, then pass over the user's comparisons."""
    _pass_over_users(machines, machines.solver.inner, seed_of(rng))


def _pass_over_users(machines: Machines, passes: int, seed: int) -> None:
    """Compute each user's vector from its duals, then pass over the user's comparisons `passes` times."""
    if not len(machines.train):
        return  # a part of the users may have no comparison
    kernel.users_pass(
        box=machines.box,
        comparisons=machines.rows,
        duals=machines.duals,
        vectors=machines.vectors,
        passes=passes,
        seed=seed,
        threads=machines.threads,
    )


def _draw_items(machines: Machines, rng: np.random.Generator) -> bool:
    """Compute V from its duals, then update by as many randomly drawn comparisons as there are."""
    stale = _rebuild_items(machines)
    for _ in range(machines.solver.inner):
        kernel.drawn_items_pass(box=machines.box, tasks=machines.tasks, vectors=machines.vectors, rng=rng)
    return stale


def _draw_users(machines: Machines, rng: np.random.Generator) -> None:
    """Compute U from its duals, then update by as many randomly drawn comparisons as there are."""
    _pass_over_users(machines, passes=0, seed=0)
    for _ in range(machines.solver.inner):
        kernel.drawn_users_pass(
            box=machines.box, tasks=machines.tasks, duals=machines.duals, vectors=machines.vectors, rng=rng
        )


# ---- with the users in parts ----


@dataclass(frozen=True, eq=False)
class _Site:
    """What all parts in one process share."""

    solver: AltSVM
    n_items: int
    threads: int

    @cached_property
    def items(self) -> Floats:
        """Items' vectors to work on, by one part after another; no part expects to find there what it left."""
        return zero_rows(self.n_items, self.solver.rank)


class _Part:
    """A part's machines, with the random stream of its passes."""

    def __init__(self, train: Comparisons, seed: int, site: _Site) -> None:
        self.rng = np.random.default_rng(seed)
        users = np.abs(start(self.rng, np.diff(train.indptr), site.solver.rank))
        duals, plan = np.zeros(len(train), np.float32), _planned(site.solver, train, self.rng)
        self.machines = Machines(site.solver, train, users, site.items, site.threads, duals, plan)

    def at(self, items: Floats) -> Machines:
        """The machines with these items' vectors."""
        self.machines.items[:] = items
        return self.machines


class SpreadMachines:
    """The driver's side of a fit: the items' vectors, and calls of the functions below on the parts."""

    def __init__(
        self, solver: AltSVM, executor: Executor, train: Comparisons, rng: np.random.Generator, threads: int
    ) -> None:
        if len(train):
            check_rank("AltSVM", solver.rank, train.n_users, train.n_items)
        self.solver, self.executor, self.train = solver, executor, train
        self.edges = edges_of(train, solver.partitions, "AltSVM")
        views = parts_of(train, self.edges)
        executor.place(_Part, [(view, seed_of(rng)) for view in views], _Site(solver, train.n_items, threads))
        per_item = schedules.loads(train.better, train.worse, train.n_items)
        self.known = per_item > 0
        self.items = np.where(self.known[:, None], start(rng, per_item, solver.rank), 0.0)

    def fit_items(self) -> bool:
        """Compute V from its duals and let all parts change theirs; whether the duals were stale."""
        self.items, linear, square = self.executor.total(_items_from_duals)
        exponent, stale = _scaling(self.solver, linear, square, squared_norm(self.items))
        self.items = np.ldexp(self.items, exponent)
        for number in range(self.solver.inner):
            self.items = self.items + self.executor.total(_change_items, self.items, 0 if number else exponent)[0]
        return stale

    def fit_users(self) -> None:
        """Update the users' vectors, part by part."""
        self.executor.total(_fit_users, self.items)

    def halve(self, side: str) -> None:
        """Halve the vectors of a side."""
        if side == "users":
            self.executor.total(_halve_users)
        else:
            self.items = self.items / 2

    def model(self) -> Model:
        """The model with these items' vectors, and the users' vectors in the parts."""
        items = np.where(self.known[:, None], self.items, np.nan)[:, : self.solver.rank]
        users = ScatteredUsers(self.executor, self.edges, _shown, self.solver.rank)
        return ScatteredFactors(users, items)

    def objective(self) -> float:
        """The objective, the sum of losses plus lam/2 (|U|^2 + |V|^2)."""
        return self.losses() + self.solver.lam / 2 * (self.size("users") + self.size("items"))

    def losses(self) -> float:
        """The sum of the losses of all comparisons."""
        return float(self.executor.total(_losses, self.items)[0])

    def size(self, side: str) -> float:
        """The sum of squares of all users' or items' vectors."""
        return float(self.executor.total(_size_of_users)[0]) if side == "users" else squared_norm(self.items)

    def dual_value(self, side: str) -> float:
        """The dual objective of a half, times lam: no pass lowers it."""
        size, linear, square = self.executor.total(_of_duals, side)
        if side == "items":
            size = squared_norm(self.executor.total(_items_from_duals)[0])
        return float(self.solver.lam * (linear - size / 2 - _ridge(self.solver) / 2 * square))

    def gap(self, side: str) -> float:
        """The duality gap of the half just fitted, as in `Machines`."""
        return self.losses() + self.solver.lam / 2 * self.size(side) - self.dual_value(side)


# What the parts are asked for; each gives what is summed over them.


def _items_from_duals(part: _Part) -> Sums:
    """The part of V that its duals give, and the sums of the duals and of their squares."""
    machines = part.at(np.zeros(()))
    linear, square = kernel.items_from_duals(
        tasks=machines.tasks, rounds=machines.plan.rounds, vectors=machines.vectors, threads=machines.threads
    ).sum(axis=0)
    return machines.items.copy(), float(linear), float(square)


def _change_items(part: _Part, items: Floats, exponent: int) -> Sums:
    """Scale its duals by a power of two, and pass over its comparisons; by how much its duals change V.

    The kernel changes V by the whole of what the duals change. With users' vectors sqrt(P) times as long and items'
    vectors as much shorter every margin is the same, and the change of V counts P times.
    """
    machines, root = part.at(items), np.sqrt(part.machines.solver.partitions)
    duals = machines.plan.records["dual"]
    np.ldexp(duals, exponent, out=duals)
    shorter = machines.items / root
    machines.items[:] = shorter
    vectors = kernel.Vectors(users=machines.users * root, items=machines.items)
    if machines.solver.schedule == "random":
        if len(duals):
            kernel.drawn_items_pass(box=machines.box, tasks=machines.tasks, vectors=vectors, rng=part.rng)
    else:
        _pass_over_items(machines, vectors, part.rng)
    return ((machines.items - shorter) / root,)


def _fit_users(part: _Part, items: Floats) -> Sums:
    """Update the part's users; nothing is summed."""
    part.at(items).fit_users(part.rng)
    return ()


def _halve_users(part: _Part) -> Sums:
    """Halve the vectors of the part's users; nothing is summed."""
    part.machines.halve("users")
    return ()


def _losses(part: _Part, items: Floats) -> Sums:
    """The sum of the losses."""
    return (part.at(items).losses(),)


def _size_of_users(part: _Part) -> Sums:
    """The sum of the squares of the users' vectors."""
    return (part.machines.size("users"),)


def _of_duals(part: _Part, side: str) -> Sums:
    """The squares of the users' vectors, the duals of a half and their squares, each summed."""
    machines = part.machines
    linear, square = kernel.sums(duals=machines.duals if side == "users" else machines.plan.records["dual"])
    return machines.size("users"), linear, square


def _shown(part: _Part) -> Floats:
    """The vectors of a part's users."""
    machines = part.machines
    return machines.users[:, : machines.solver.rank]
