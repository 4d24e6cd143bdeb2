"""The small figures of the pages: lines of a metric, an objective or a gap, from trainings on generated data."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import rankbench
from rankbench import Split, Step
from rankbench.execution.training import Checkpoint, trained
from rankbench.experiments import Budget
from rankbench.report.render.figures.looks import COLOURS, DASHES, MARKERS, style
from rankbench.solvers import SOLVERS

PLACE = "{}"  # in a solver, split or metric: where the values of the horizontal axis go
_MARKS = 20  # marks on a line, about


@dataclass(frozen=True)
class Plan:
    """What a figure shows: a line for each solver, over the steps of its training or over values of a setting."""

    data: str
    split: str
    y: str  # a metric, `objective` or `gap`
    solvers: tuple[str, ...]
    steps: int = 20
    x: str = "step"
    values: tuple[float, ...] = ()  # on the horizontal axis; none: the steps
    logarithmic: str = ""  # axes: x, y or xy

    def lines(self) -> list["Line"]:
        """The measured lines."""
        return [Line(solver.replace(PLACE, "…"), *zip(*self._points(solver), strict=True)) for solver in self.solvers]

    def _points(self, solver: str) -> Iterator[tuple[float, float]]:
        data = rankbench.load(self.data)
        for value in self.values:
            text, split, y = (part.replace(PLACE, f"{value:g}") for part in (solver, self.split, self.y))
            yield value, _steps(text, rankbench.split(data, split), self.steps, y)[-1]
        if not self.values:
            yield from enumerate(_steps(solver, rankbench.split(data, self.split), self.steps, self.y))


@dataclass(frozen=True)
class Line:
    """A line of a figure, with its points."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def _steps(solver: str, split: Split, steps: int, y: str) -> list[float]:
    """The value at each step of a training."""
    record, found = SOLVERS.make(solver), []

    def tell(checkpoint: Checkpoint) -> None:
        found.append(_value(checkpoint.step, split, y))

    trained(record, split.train_for(record), Budget(steps, None, None), 0, tell=tell)
    return found


def _value(step: Step, split: Split, y: str) -> float:
    if y in ("objective", "gap"):
        function = step.objective if y == "objective" else step.gap
        if function is None:
            raise rankbench.UserError(f"a step has no {y}")
        return function()
    return rankbench.evaluate(step.model, split, y)


def draw(plan: Plan, lines: list[Line], path: Path) -> None:
    """Write the figure as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(style()):
        figure = Figure(figsize=(4.8, 2.6), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(lines):
            look = {"color": COLOURS[number % len(COLOURS)], "ls": DASHES[number % len(DASHES)]}
            look |= {"marker": MARKERS[number % len(MARKERS)], "markevery": max(1, len(line.x) // _MARKS)}
            axes.plot(line.x, line.y, label=line.label, **look)
        axes.set(xlabel=plan.x, ylabel=plan.y.replace(PLACE, "k").replace("[", "\n["))
        for axis in plan.logarithmic:
            axes.set(**{f"{axis}scale": "log"})
        if len(lines) > 1:
            figure.legend(loc="outside lower center", ncols=2)
        figure.savefig(path, format="svg", metadata={"Date": None})


def told(plan: Plan, lines: list[Line]) -> str:
    """The figure in words, for people who do not see it: where each line begins and ends."""
    ends = [f"{line.label} from {line.y[0]:.3g} to {line.y[-1]:.3g}" for line in lines]
    return f"{plan.y.replace(PLACE, 'k')} by {plan.x}, on {plan.data}: {'; '.join(ends)}"
