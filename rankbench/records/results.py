"""What came of a cell: its curve, its counts, how it ended, and where it was made."""

from dataclasses import dataclass, replace
from datetime import datetime
from math import isnan, nan
from typing import Literal, get_args

from rankbench.experiments import Budget
from rankbench.records.cells import Cell
from rankbench.records.machines import Machine

Status = Literal["ok", "diverged", "failed", "timeout", "memory", "lost"]


@dataclass(frozen=True)
class Point:
    """A point of the training curve: the evaluation of the model after some step."""

    step: int
    seconds: float  # training time inside the solver up to this step
    values: tuple[float, ...]  # of the cell's metrics, in their order; NaN where a metric has no value
    objective: float | None = None
    gap: float | None = None
    bound: float | None = None  # upper limit of the speed-up that these threads can give


@dataclass(frozen=True)
class Counted:
    """How many users a metric counts, and how many it leaves out."""

    users: int
    left_out: int


@dataclass(frozen=True)
class Weight:
    """A named feature and its weight."""

    feature: str
    weight: float


@dataclass(frozen=True)
class RankingFunction:
    """The strongest features of one basic ranking function, with positive and negative weights, strongest first."""

    positive: tuple[Weight, ...]
    negative: tuple[Weight, ...]


Stage = Literal["data", "split", "read", "prepare", "train", "evaluate"]

STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Peak:
    """The highest resident memory of the process that ran a stage, while it ran; mapped files count where resident.

    The driver makes or reads the data and cuts the split. The cell's own process reads the split, makes the view that
    the solver learns from, trains and evaluates.
    """

    stage: Stage
    megabytes: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of training and evaluating a cell, as its own process tells it."""

    status: Status
    reason: str | None
    curve: tuple[Point, ...]
    counted: tuple[Counted, ...]  # for each metric of the cell; empty if nothing was evaluated
    unscored: float | None  # share of held-out pairs that the model scored NaN
    prepare: float | None = None  # seconds to make the view that the solver learns from, not part of training time
    imported: tuple[str, ...] = ()  # packages imported during training
    trace: str | None = None  # traceback of a failure
    stopped: str | None = None  # what ended the training: the budget or the solver
    functions: tuple[RankingFunction, ...] = ()  # basic ranking functions, if the model has them
    split: str = ""  # SHA-256 of the split's parts; empty in results from before it was kept
    model: str = ""  # SHA-256 of the last model's arrays; empty also where a model is no record of arrays
    values: str = ""  # SHA-256 of the metrics' values for each user; empty in results from before it was kept
    peaks: tuple[Peak, ...] = ()  # in the order of the stages; empty in results from before they were measured


@dataclass(frozen=True, kw_only=True)
class Result(Measured):
    """The result of a cell: what was measured, and under which conditions."""

    cell: Cell
    wall: float  # wall time of the whole cell, including evaluation and starting the process
    peak_mb: float | None
    contended: bool  # disturbed by cells that ran at the same time: its times are unreliable
    machine: Machine
    finished: str
    load: float | None = None  # cores that other processes used meanwhile
    start: str = ""  # of a trial: the key of the trial whose model it started from; empty if it started from nothing

    def __post_init__(self) -> None:
        if any(len(point.values) != len(self.cell.measures) for point in self.curve):
            raise ValueError("a point of its curve does not have one value for each metric")
        if not is_time(self.finished):
            raise ValueError("its date is none")

    def __repr__(self) -> str:
        values = [f"{measure.label} {self.value(measure.label):.4g}" for measure in self.cell.measures]
        return f"Result({self.cell.label}: {', '.join([self.status, *values])})"

    @property
    def key(self) -> str:
        """The key of its cell."""
        return self.cell.key

    @property
    def seconds(self) -> float | None:
        """Training seconds inside the solver."""
        return self.curve[-1].seconds if self.curve else None

    @property
    def relative_gap(self) -> float | None:
        """The last model's gap relative to its objective; None where either is not recorded, or the objective is 0."""
        last = self.curve[-1] if self.curve else None
        return last.gap / abs(last.objective) if last and last.gap is not None and last.objective else None

    def value(self, label: str) -> float:
        """A metric's value for the last model, or for the best one of a trial with patience; NaN if there is none."""
        return self.value_at(self._counting_point, label) if self.curve else nan

    @property
    def chosen_budget(self) -> Budget:
        """The budget of a cell with this trial's settings: after patience, the steps to the trial's best value."""
        budget = self.cell.budget
        return budget if budget.patience is None else replace(budget, steps=self._counting_point.step, patience=None)

    @property
    def _counting_point(self) -> Point:
        """The last point of the curve; of a trial with patience the first one with the best value."""
        if self.cell.budget.patience is None:
            return self.curve[-1]
        measure = self.cell.measures[0]
        values = [measure.sign * self.value_at(point, measure.label) for point in self.curve]
        known = [value for value in values if not isnan(value)]
        return self.curve[values.index(max(known))] if known else self.curve[-1]

    def value_at(self, point: Point, label: str) -> float:
        """A metric's value at a point of the curve, or NaN if there is none."""
        for measure, value in zip(self.cell.measures, point.values, strict=True):
            if measure.label == label:
                return value
        return nan

    def counted_by(self, label: str) -> Counted | None:
        """How many users a metric counts, or None if unknown."""
        found = dict(zip((measure.label for measure in self.cell.measures), self.counted, strict=False))
        return found.get(label)

    @property
    def disturbed(self) -> bool:
        """Whether other processes used so much of the machine that the measured times are unreliable."""
        return self.load is not None and self.load > DISTURBED


def is_time(text: str) -> bool:
    """Whether a text is a date with a time, as Python writes it."""
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


DISTURBED = 0.25  # above this many cores used by other processes on average, a time is unreliable


def pairs_of(label: str) -> str:
    """The name of the array, among a cell's values for each user, that holds the numbers of pairs of a metric."""
    return f"{label} (pairs)"
