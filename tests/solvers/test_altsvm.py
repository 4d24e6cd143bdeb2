"""AltSVM against scikit-learn, its own certificates, and what a run achieves."""

from solvers.contract import SolverContract

from rankbench.solvers.altsvm import AltSVM


class TestAltSVM(SolverContract):
    solver = AltSVM(rank=3, lam=0.5)


class TestAltSVMWithHingeLoss(SolverContract):
    solver = AltSVM(rank=2, lam=0.5, loss="hinge", inner=2, groups=5)


class TestAltSVMPartitioned(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="partitioned", groups=4)


class TestAltSVMHogwild(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="hogwild")


class TestAltSVMAtomic(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="atomic")


class TestAltSVMRandom(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="random")
