"""Standard matrix completion against a dense reference."""

import numpy as np

from rankbench.solvers.smc import SMC
from solvers.contract import SolverContract


class TestSMC(SolverContract):
    solver = SMC(lam=2.0)


class TestCentredSMC(SolverContract):
    solver = SMC(lam=2.0, centred=True)
