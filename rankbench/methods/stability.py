"""Stability bounds on how far a magnitude-preserving ranker's true error lies from its training error.

Cortes, Mohri and Rastogi 2007, section 2: the cost of a pair is a power n = 1 or 2 of an absolute difference, h
minimises |h|^2 + C/m^2 sum_ij cost, K(x, x) <= kappa^2, and |h(x) - y| <= M for every h and x. Costs depend on
differences alone, so scores and ratings may be moved by a constant to make M small.
"""

from math import log, sqrt

from rankbench.core.errors import UserError


def admissibility(n: int, M: float) -> float:
    """The Lipschitz constant sigma of the cost in the scores (Lemma 1): 1 for n = 1, 4 M for n = 2."""
    _check(n=n, M=M)
    return 1.0 if n == 1 else 4.0 * M


def stability(C: float, kappa: float, m: int, n: int, M: float) -> float:
    """The stability beta = 4 C sigma^2 kappa^2 / m: how much a cost changes without one of m points (Proposition 1)."""
    _check(C=C, kappa=kappa, m=m)
    return 4.0 * C * admissibility(n, M) ** 2 * kappa**2 / m


def deviation(beta: float, m: int, n: int, M: float, delta: float) -> float:
    """An upper bound on |true error - training error| that holds with probability 1 - delta (Theorem 1).

    They differ by more than excess + 2 beta with probability 2 exp(-m excess^2 / (2 (beta m + (2M)^n)^2)) at most.
    The proof replaces a point where the definition of beta leaves one out; replacing may cost twice as much, so
    2 beta for beta is the safe reading.
    """
    _check(m=m, n=n, M=M)
    if not 0.0 < delta < 1.0:
        raise UserError(f"delta={delta:g} is out of range: must be above 0 and below 1")
    return 2.0 * beta + (beta * m + (2.0 * M) ** n) * sqrt(2.0 / m * log(2.0 / delta))


def bound(C: float, kappa: float, m: int, n: int, M: float, delta: float = 0.05) -> float:
    """An upper bound on true error - training error that holds with probability 1 - delta (Corollary 1).

    n = 1: 8 kappa^2 C/m + 2 (2 kappa^2 C + M) sqrt(2/m log 2/delta); n = 2: 128 kappa^2 C M^2/m + 4 M^2 (16 kappa^2
    C + 1) sqrt(2/m log 2/delta).
    """
    return deviation(stability(C, kappa, m, n, M), m, n, M, delta)


def _check(**values: float) -> None:
    """Raise an error for the first value that is out of range."""
    for name, value in values.items():
        if name == "n" and value not in (1, 2):
            raise UserError(f"n={value:g} is out of range: must be 1 or 2")
        if not value > 0:
            raise UserError(f"{name}={value:g} is out of range: must be above 0")
