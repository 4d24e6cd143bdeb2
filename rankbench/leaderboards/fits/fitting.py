"""Scores that minimise an objective, by Newton's method, with a certificate of how near the minimum they are."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.leaderboards.fits.problems import Point, Problem, Reweighted, with_penalty

_ITERATIONS = 100
_HALVINGS = 60
_ARMIJO = 1e-4
_NEAR = 1e-7  # the decrement below which a step is taken without a test, since the value no longer shows it
_FAR = 25.0  # log odds beyond which a parameter is on its way to infinity: one in 7e10
_CONVERGED = 1e-11  # of the decrement, relative to the objective's root


@dataclass(frozen=True, eq=False)
class Fit:
    """The parameters at the minimum. `gap` is half the squared Newton decrement g' H^-1 g.

    For a convex objective whose curvature hardly changes over the last step it is the distance to the minimum.
    """

    problem: Problem
    parameters: Floats
    penalty: float
    objective: float
    gap: float
    inverse: Floats  # of the Hessian
    iterations: int

    @property
    def scores(self) -> Floats:
        """The items' scores, with mean 0."""
        own = self.parameters[: self.problem.n_items]
        scores: Floats = own - own.mean()
        return scores

    @property
    def beside(self) -> dict[str, float]:
        """The other parameters by name."""
        return dict(zip(self.problem.names, map(float, self.parameters[self.problem.n_items :]), strict=True))


def fitted(problem: Problem, penalty: float = 0.0) -> Fit:
    """The minimum of the objective; it exists with a penalty, and where no items can be pulled apart for ever."""
    z = problem.start
    point = with_penalty(problem.at(z), z, problem.n_items, penalty)
    last = np.inf
    for iteration in range(_ITERATIONS):
        try:
            factor = scipy.linalg.cho_factor(point.hessian)
        except scipy.linalg.LinAlgError:
            break
        direction = -scipy.linalg.cho_solve(factor, point.gradient)
        decrement = float(np.sqrt(max(0.0, -point.gradient @ direction)))
        if decrement <= _CONVERGED * np.sqrt(1 + abs(point.value)) or (decrement < _NEAR and decrement > last / 2):
            if np.abs(z).max() > _FAR:
                break
            inverse = scipy.linalg.cho_solve(factor, np.eye(len(z)))
            return Fit(problem, z, penalty, point.value, decrement**2 / 2, inverse, iteration)
        z, point = _next(problem, penalty, z, point, direction)
        last = decrement
    raise UserError(
        "the scores do not settle: the comparisons can be explained ever better by ever larger numbers",
        remedy="leave out covariates that separate wins from losses, or give a penalty",
    )


def _next(problem: Problem, penalty: float, z: Floats, point: Point, direction: Floats) -> tuple[Floats, Point]:
    """The next parameters along the Newton direction, whose length is halved until the objective falls enough."""
    slope = float(point.gradient @ direction)
    length = 1.0
    for _ in range(_HALVINGS):
        candidate = z + length * direction
        with np.errstate(over="ignore", invalid="ignore"):
            found = with_penalty(problem.at(candidate), candidate, problem.n_items, penalty)
        if found.value <= point.value + _ARMIJO * length * slope or (-slope < _NEAR and np.isfinite(found.value)):
            return candidate, found
        length /= 2
    return z, point


def refitted(fit: Fit, reweighted: Reweighted, drawn: Floats) -> Floats:
    """The parameters at the minimum (parameters x draws) with other weights, as `Reweighted.draw` made them.

    Newton's method with the Hessian of the fit itself: each step costs gradients alone, of all draws side by side, and
    brings them nearer by a factor that is the relative change of the Hessian.
    """
    z = np.repeat(fit.parameters[:, None], drawn.shape[-1], axis=1)
    best = np.full(drawn.shape[-1], np.inf)
    n, length = fit.problem.n_items, np.ones(drawn.shape[-1])
    for _ in range(_ITERATIONS):
        gradients = reweighted.gradients(z, drawn)
        if fit.penalty:
            gradients[:n] += fit.penalty * np.tanh(z[:n] / 2) / 2
        steps = fit.inverse @ gradients
        sizes = np.sqrt(np.maximum(0.0, (gradients * steps).sum(axis=0)))
        if (sizes < 1e-6).all():
            break
        length = np.where(sizes > best, length / 2, length)
        best = np.minimum(best, sizes)
        z -= length * steps
    return z
