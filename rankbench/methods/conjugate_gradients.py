"""Preconditioned conjugate gradients for Newton directions, on vectors that consist of several arrays.

Written by hand, and not SciPy's `cg`, for what that cannot do: unknowns in two matrices (the factors of users and
of items) or in two coordinates (coefficients and scores), an inner product of one's own, and an end where the
curvature is not positive. `methods.newton`, `solvers.global_ranking` and `solvers.imc` use SciPy's: it stops by
the norm of the residual, so they would take other numbers of iterations here, and end in other bits.
"""

from collections.abc import Callable

import numpy as np

from rankbench.core.contract import Floats

Blocks = tuple[Floats, ...]  # a vector, in one or more arrays


def inner_product(one: Blocks, other: Blocks) -> float:
    """The sum of the products of all entries."""
    return float(sum(np.vdot(left, right) for left, right in zip(one, other, strict=True)))


def unchanged(residual: Blocks) -> Blocks:
    """The residual itself: the identity as a preconditioner."""
    return residual


def conjugate_gradients(
    times: Callable[[Blocks], Blocks],
    right: Blocks,
    enough: Callable[[float], float],
    most: int,
    *,
    precondition: Callable[[Blocks], Blocks] = unchanged,
    inner: Callable[[Blocks, Blocks], float] = inner_product,
) -> Blocks:
    """About the solution x of A x = right, from x = 0, for a symmetric positive definite A given by its products.

    `precondition` applies a symmetric positive definite M, close to the inverse of A, to a residual r. `inner` is
    handed what `times` or the right-hand side made first and a direction or x second; where M maps to another
    representation (more arrays), both `times` and x are in that one. The iteration ends once r . M r is at most
    enough(r . M r at the start), after `most` products with A, or at a direction of no positive curvature: if that
    is the first direction, M right, it is returned itself, which still descends on a function that is not convex.
    """
    residual = tuple(np.array(block) for block in right)
    direction = tuple(np.array(block) for block in precondition(residual))
    solution = tuple(np.zeros_like(block) for block in direction)
    size = inner(residual, direction)
    threshold = enough(size)
    for iteration in range(most):
        if size <= threshold:
            break
        product = times(direction)
        curvature = inner(product, direction)
        if curvature <= 0:
            return solution if iteration else direction
        _add(solution, size / curvature, direction)
        _add(residual, -size / curvature, product)
        scaled = precondition(residual)
        before, size = size, inner(residual, scaled)
        for block, part in zip(direction, scaled, strict=True):
            np.multiply(block, size / before, out=block)
            np.add(block, part, out=block)
    return solution


def _add(to: Blocks, scale: float, blocks: Blocks) -> None:
    """to += scale blocks, in place."""
    for block, part in zip(to, blocks, strict=True):
        np.add(block, scale * part, out=block)
