"""Retargeted matrix completion."""

from rankbench.solvers.rmc import RMC
from solvers.contract import SolverContract, ratings
from rankbench.data.views import offer


class TestRMC(SolverContract):
    solver = RMC(lam=2.0)


class TestRMCFromComparisons(SolverContract):
    solver = RMC(lam=2.0)

    def train_of(self):
        return ratings().comparisons()
