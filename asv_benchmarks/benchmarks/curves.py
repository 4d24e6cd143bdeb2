"""Training curves: the held-out error at a fixed step, and the seconds to a fixed error."""

from math import inf, nan

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Step
from rankbench.core.streams import stream
from rankbench.data.splits import Split
from rankbench.data.views import offer
from rankbench.execution.training import Budget, checkpoints
from rankbench.metrics import evaluate

from .problems import PROBLEMS, Problem, parts, solver

Curve = list[tuple[float, float]]  # training seconds and held-out error, step by step


class Curves:
    """One training run of every solver: its final error, and the seconds to a fixed error."""

    params = tuple(PROBLEMS)
    param_names = ("solver",)
    timeout = 300

    def setup_cache(self) -> dict[str, Curve]:
        """The curve of each solver that this commit has."""
        return {name: curve for name, problem in PROBLEMS.items() if (curve := _curve(problem))}

    def track_error(self, curves: dict[str, Curve], name: str) -> float:
        """The error after the last step; it must stay the same, because the seed is fixed."""
        return curves[name][-1][1] if name in curves else nan

    track_error.unit = "pairwise error"

    def track_seconds(self, curves: dict[str, Curve], name: str) -> float:
        """The training seconds until the error is at most the problem's target; these may vary."""
        reached = (seconds for seconds, error in curves.get(name, []) if error <= PROBLEMS[name].error)
        return next(reached, inf if name in curves else nan)

    track_seconds.unit = "seconds"


def _curve(problem: Problem) -> Curve:
    """Time and error at each step; empty if this commit does not have the solver."""
    try:
        learner = solver(problem)
    except NotImplementedError:
        return []
    halves = parts(problem)
    steps = learner.steps(offer(learner, halves.train), stream(0, "asv", problem.solver), 1)
    with one_blas_thread():
        return [(point.seconds, _error(point.step, halves)) for point in checkpoints(steps, Budget(problem.steps))]


def _error(step: Step, halves: Split) -> float:
    return evaluate(step.model, halves.test, ["pairwise-error"])["pairwise-error"]
