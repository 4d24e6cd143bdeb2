"""The model of a stored cell, trained again from what the cell describes, and compared with the stored one by hash.

Results hold no models, which are large. A model is made again from its cell: the split is cut again and must have the
same rows, the solver is seeded as before, and takes as many steps as it took. A budget in seconds or a tolerance does
not matter, because the stored curve tells at which step the training ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Solver
from rankbench.core.errors import UserError
from rankbench.data.views import offer
from rankbench.execution import machine
from rankbench.execution.training import checkpoints
from rankbench.execution.worker import digest_of, rng_of
from rankbench.experiments import Budget
from rankbench.fitted import Fitted
from rankbench.models import MODELS
from rankbench.planning.materials import Materials
from rankbench.records.cells import BESIDE, Measure
from rankbench.records.codec import Unreadable
from rankbench.records.differences import basis_change, races
from rankbench.records.results import Result
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Group
from rankbench.statistics.samples import of_most

FEWEST = 6  # digits of a key that tell which cell is meant


@dataclass(frozen=True)
class Remade:
    """A model made again; `difference` says why it is not the stored one, and is empty if it is."""

    model: Fitted
    difference: str
    rows: int  # of the part that it was trained on

    @property
    def has_ids(self) -> bool:
        """Whether it knows users or items by the ids of their publication."""
        return self.model.user_ids is not None or self.model.item_ids is not None


def remade(result: Result) -> Remade:
    """The model of a stored result, trained again; an error if it has none, or if its split cannot be made again."""
    cell = result.cell
    if result.status != "ok":
        raise UserError(f"{cell.label} ended as {result.status}: only a cell that ended well has a model")
    if cell.is_judged:
        raise UserError(f"another tool trained {cell.solver.written}: only its scores are here, and no model")
    split = Materials(cell.seed).split(cell.place)
    if split.hash != cell.split_hash:
        was, now = cell.split_hash[:12], split.hash[:12]
        raise UserError(f"the data at hand gives another split of {cell.place.written}: hash {now}, stored {was}")
    solver: Solver = cell.solver.record
    train = offer(solver, split.train_for(solver))
    budget, model = Budget(steps=result.curve[-1].step), None
    with one_blas_thread():
        for checkpoint in checkpoints(solver.steps(train, rng_of(cell), cell.threads), budget):
            model = checkpoint.step.model
    if model is None or MODELS.get(type(model).__name__) is not type(model):
        kind = type(model).__name__
        raise UserError(f"{cell.solver.written} makes a {kind}, which no file of rankbench holds: only models of "
                        "rankbench.models can be saved")  # fmt: skip
    fitted = Fitted.of(model, split.train, split.seen, solver)
    return Remade(fitted, _difference(result, digest_of(model)), len(train))


def _difference(result: Result, digest: str) -> str:
    """Why a model with this digest is not the stored one; empty if it is."""
    if digest == result.model:
        return ""
    if not result.model:
        return "its result is older than hashes of models, so nothing tells whether it is the same"
    if races(result.cell):
        return "its threads race, so each training gives another model"
    change = basis_change(result.machine, machine.describe())
    return (
        f"it has other bytes: {change}" if change else "it has other bytes on the same kernels, libraries and processor"
    )


def by_key(results: ResultsFolder, digits: str) -> Result:
    """The stored result whose cell's key starts with these digits; an error if there is none, or more than one."""
    found: dict[str, Result] = {}
    for name in results.names():
        store = results.store(name)
        for path in store.measurements():
            known = path.stem.rpartition("-")[2]
            if BESIDE in path.name or not known.startswith(digits[: len(known)]):
                continue
            try:
                result = store.read(path)
            except Unreadable as error:
                raise UserError(f"{path} cannot be read: {error}", remedy="run its experiment again") from None
            if result.key.startswith(digits):
                found.setdefault(result.key, result)
    if not found:
        raise UserError(f"no result in {results.out} has a key that starts with {digits}")
    if len(found) > 1:
        listed = "; ".join(f"{key[:16]} is {result.cell.label}" for key, result in sorted(found.items()))
        raise UserError(f"{digits} is the start of {len(found)} keys: {listed}")
    return next(iter(found.values()))


def best_of(groups: Sequence[Group], measure: Measure, remedies: Mapping[str, str]) -> Result:
    """The first repetition of the group with the best mean value; all groups must be on the same data and split.

    Compared are the groups that have the repetitions that most have, as for verdicts, because others have other users
    and rows. `remedies` say how to choose one of several `data`, and one `split`.
    """
    for kind, remedy in remedies.items():
        places = sorted({getattr(group, kind).written for group in groups})
        if len(places) > 1:
            raise UserError(f"values on different {kind} cannot be compared: {', '.join(places)}", remedy=remedy)
    known = [(values, group) for group in groups if (values := group.by_repetition(measure.label))]
    if not known:
        raise UserError(f"no cell that was asked for has ended well with a value of {measure.label}")
    shared = of_most([tuple(sorted(values)) for values, _ in known])
    whole = [(fmean(values[one] for one in shared), group) for values, group in known if set(shared) <= set(values)]
    best = max(whole, key=lambda pair: measure.sign * pair[0])[1]
    return min(best.good, key=lambda result: result.cell.place.repetition)
