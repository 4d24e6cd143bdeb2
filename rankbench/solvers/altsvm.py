"""Alternating support vector machines for factors from comparisons (Park et al. 2015; Park and Zhang 2014)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from rankbench import schedules
from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Comparisons
from rankbench.factors import check_rank, seed_of, start
from rankbench.kernels import altsvm as kernel
from rankbench.models import Factors
from rankbench.specs import Limits, check

_LOSSES = {"squared-hinge": kernel.SQUARED_HINGE, "hinge": kernel.HINGE}
_CHUNKS = 64  # tasks that a pass without groups of items is cut into, for threads to take


@dataclass(frozen=True)
class AltSVM:
    """A vector per user and item: a support vector machine for all items, then one for each user, in turn.

    min over U, V of sum L(u_i . (v_j - v_k)) + lam/2 (|U|^2 + |V|^2), C = 1/lam. A half holds one side
    fixed and is convex; it rebuilds the other from its dual variables, which stay from one turn to the
    next, and visits every comparison `inner` times by dual coordinate descent. Duals that the other side's
    move has left far too long or short are first scaled, all of a machine by one power of two: without
    that the halves diverge where lam is small and passes are few. Every half is a step; its part_gap
    certifies that half. (The authors' published code has its hinge fall through into the squared
    hinge; here they are two losses.) Users and items that are in no comparison score NaN.

    The users' half is parallel as it is. Schedules say who visits which comparison when in the items'
    half. `tournament`: items in `groups` of like load; comparisons go by their pair of groups, and the
    pairs of a round share no item, so any number of threads gives the same bits. `partitioned`: the same
    with METIS cutting the item graph into the groups, so that most of the work is within them. (The report
    has one part per thread, which race for the items of a comparison across the cut; here these wait until
    their two parts meet.) At most half as many threads as groups find work at all times. `hogwild`: users
    in chunks, threads without locks (PASSCoDe-Wild); `atomic`: the same, no addition ever lost
    (PASSCoDe-Atomic). `random`: every update draws its comparison from all of them, as the authors' code
    does, on one thread; the slowest, kept for comparison.
    """

    rank: Annotated[int, Limits(low=1)] = 10
    lam: Annotated[float, Limits(above=0)] = 1.0
    loss: Literal["squared-hinge", "hinge"] = "squared-hinge"
    inner: Annotated[int, Limits(low=1)] = 1
    schedule: Literal["tournament", "partitioned", "hogwild", "atomic", "random"] = "tournament"
    groups: Annotated[int, Limits(low=1, high=128)] = 16
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    @property
    def determinism(self) -> Determinism:
        """Exact, but for the two schedules whose threads write to the same items."""
        return Determinism.RACY if self.schedule in ("hogwild", "atomic") else Determinism.EXACT

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each half: items, users, items, ..."""
        per_user, per_item = np.diff(train.indptr), schedules.loads(train.better, train.worse, train.n_items)
        if len(train):
            check_rank("AltSVM", self.rank, train.n_users, train.n_items)
        state = _State(
            train,
            start(rng, per_user, self.rank),
            start(rng, per_item, self.rank),
            *self._box(),
            np.flatnonzero(per_user),
            np.flatnonzero(per_item),
            threads,
        )
        model = Factors(state.users[:, : self.rank], state.items[:, : self.rank])

        def losses() -> float:
            return _losses(_LOSSES[self.loss], state)

        def objective() -> float:
            return losses() + self.lam / 2 * (state.size("users") + state.size("items"))

        yield Step(model, objective)
        if not len(train):
            return
        duals = np.zeros(len(train), np.float32)
        plan = _plan(self, train, rng)
        halves = {
            "items": (plan.records["dual"], _drawn_items if self.schedule == "random" else _fit_items),
            "users": (duals, _drawn_users if self.schedule == "random" else _fit_users),
        }
        while True:
            for side, (own, fit) in halves.items():
                fit(state, plan, duals, self.inner, rng)
                yield Step(model, objective, part_gap=self._gap(losses, state, side, own))

    def _box(self) -> tuple[float, float]:
        """The ridge on a dual and its upper end, which is never above the bound for being rounded."""
        if self.loss == "squared-hinge":
            return self.lam / 2, np.inf
        bound = np.float32(1 / self.lam)
        return 0.0, float(bound if bound <= 1 / self.lam else np.nextafter(bound, np.float32(0)))

    def _gap(self, losses: Callable[[], float], state: "_State", side: str, duals: Any) -> Callable[[], float]:
        """How far above its optimum a half may be: lam times the primal 1/2 |w|^2 + C sum L less the dual."""

        def gap() -> float:
            linear, square = kernel.sums(duals)
            return losses() + self.lam * (state.size(side) + state.ridge / 2 * square - linear)

        return gap


@dataclass(frozen=True, eq=False)
class _State:
    """What the halves work on."""

    train: Comparisons
    users: Floats
    items: Floats
    ridge: float
    upper: float
    known_users: Ints
    known_items: Ints
    threads: int

    @property
    def rows(self) -> tuple[Ints, Ints, Ints]:
        """The comparisons as the kernels take them."""
        return self.train.indptr, self.train.better, self.train.worse

    def size(self, side: str) -> float:
        """The sum of squares of all users' or items' vectors."""
        block, known = (self.users, self.known_users) if side == "users" else (self.items, self.known_items)
        return float(np.square(block[known]).sum())


@dataclass(frozen=True, eq=False)
class _Plan:
    """The order of the items' half: records with their duals, where each task starts, the rounds' tasks."""

    records: Any
    starts: Ints
    rounds: Ints  # a row per round: its first task and its end
    races: bool = False  # tasks of a round share items
    atomic: bool = False


def _plan(solver: AltSVM, train: Comparisons, rng: np.random.Generator) -> _Plan:
    """The comparisons arranged as the schedule asks."""
    rows = train.indptr, train.better, train.worse
    if solver.schedule in ("tournament", "partitioned"):
        groups = item_groups(train, solver.schedule, solver.groups)
        order = rng.permutation(train.n_users).astype(np.int32)
        tasks = schedules.tasks(solver.groups)
        records, starts = kernel.records_of(*rows, order, groups, tasks, int(tasks.max()) + 1)
        ends = np.cumsum([0, *map(len, schedules.rounds(solver.groups))])
        return _Plan(records, starts, np.stack([ends[:-1], ends[1:]], axis=1))
    order = np.arange(train.n_users, dtype=np.int32)
    if solver.schedule != "random":
        order = rng.permutation(order)
    one = np.zeros(train.n_items, np.int32), np.zeros((1, 1), np.int32)
    records, _ = kernel.records_of(*rows, order, *one, 1)
    cuts = np.concatenate([[0], np.cumsum(np.diff(train.indptr)[order])])
    starts = np.unique(cuts[np.searchsorted(cuts, np.linspace(0, len(train), _CHUNKS + 1))])
    return _Plan(
        records, starts, np.array([[0, len(starts) - 1]]), solver.schedule != "random", solver.schedule == "atomic"
    )


def item_groups(train: Comparisons, schedule: str, groups: int) -> Ints:
    """The group of every item under `tournament` or `partitioned`."""
    if schedule == "partitioned":
        return schedules.partition(train.better, train.worse, train.n_items, groups).parts
    return schedules.balanced(schedules.loads(train.better, train.worse, train.n_items), groups)


def _fit_items(state: _State, plan: _Plan, duals: Any, inner: int, rng: np.random.Generator) -> None:
    """V from its duals, then passes over all comparisons, the rounds of each in a new order."""
    _rebuild_items(state, plan)
    for _ in range(inner):
        rounds = rng.permutation(plan.rounds)
        order = state.ridge, state.upper, plan.records, plan.starts, rounds
        kernel.items_pass(*order, state.users, state.items, seed_of(rng), plan.atomic, state.threads)


def _rebuild_items(state: _State, plan: _Plan) -> None:
    """V from its duals, all scaled by the power of two that suits the new U."""
    state.items[state.known_items] = 0.0
    factors = state.users, state.items
    sums = kernel.items_from_duals(plan.records, plan.starts, plan.rounds, *factors, plan.races, state.threads)
    exponent = kernel.scale_exponent(*sums.sum(axis=0), state.size("items"), state.ridge, state.upper)
    if exponent:
        np.multiply(plan.records["dual"], np.float32(2.0**exponent), out=plan.records["dual"])
        np.multiply(state.items, 2.0**exponent, out=state.items)


def _fit_users(state: _State, plan: _Plan, duals: Any, inner: int, rng: np.random.Generator) -> None:
    """Each user's vector from its duals, then passes over its comparisons."""
    box = state.ridge, state.upper
    kernel.users_pass(*box, *state.rows, duals, state.users, state.items, inner, seed_of(rng), state.threads)


def _drawn_items(state: _State, plan: _Plan, duals: Any, inner: int, rng: np.random.Generator) -> None:
    """V from its duals, then as many updates as comparisons, each of one drawn from all."""
    _rebuild_items(state, plan)
    for _ in range(inner):
        kernel.drawn_items_pass(state.ridge, state.upper, plan.records, state.users, state.items, rng)


def _drawn_users(state: _State, plan: _Plan, duals: Any, inner: int, rng: np.random.Generator) -> None:
    """U from its duals, then as many updates as comparisons, each of one drawn from all."""
    box = state.ridge, state.upper
    kernel.users_pass(*box, *state.rows, duals, state.users, state.items, 0, 0, state.threads)
    for _ in range(inner):
        kernel.drawn_users_pass(*box, plan.records, duals, state.users, state.items, rng)


def _losses(loss: int, state: _State) -> float:
    """The sum of losses, added up by user."""
    by_user = np.zeros(state.train.n_users)
    if len(state.train):
        kernel.losses(loss, *state.rows, state.users, state.items, by_user, state.threads)
    return float(by_user.sum())
