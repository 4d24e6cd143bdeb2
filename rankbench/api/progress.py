"""What a callback of `fit` is told after each step, and the bar that `fit(..., progress=True)` shows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rankbench.core.contract import Model


@dataclass(frozen=True)
class CurvePoint:
    """A step of a training: its number, the training seconds up to it, and the objective, if the solver has one."""

    step: int
    seconds: float
    objective: float | None


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback of `fit` is told after each step: the model so far, and the curve with a point for each step.

    The model is valid until the next step. Evaluating it does not count as training time.
    """

    model: Model
    curve: tuple[CurvePoint, ...]

    @property
    def step(self) -> int:
        """The number of the step; 0 is the start."""
        return self.curve[-1].step

    @property
    def seconds(self) -> float:
        """The training seconds up to this step."""
        return self.curve[-1].seconds

    @property
    def objective(self) -> float | None:
        """The objective of the model, if the solver has one."""
        return self.curve[-1].objective


Callback = Callable[[Progress], Any]


@contextmanager
def step_display(solver: str, steps: int | None) -> Iterator[Callback]:
    """A context with a bar that moves with each step; it shows the training seconds and the objective."""
    from rich.console import Console  # noqa: PLC0415  slow to import, and rarely needed
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
    ]
    with Bars(*columns, console=Console(stderr=True)) as bars:
        bar = bars.add_task(solver, total=steps, said="")

        def move(progress: Progress) -> None:
            objective = "" if progress.objective is None else f", objective {progress.objective:.6g}"
            bars.update(bar, completed=progress.step, said=f"{progress.seconds:.1f} s{objective}")

        yield move
