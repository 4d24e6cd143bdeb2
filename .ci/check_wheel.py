"""Checks an installed wheel where no checkout lies beside it: every kernel is imported, and a solver trains.

It needs nothing but the wheel and what that depends on: `python .ci/check_wheel.py`.
"""

import pkgutil
import subprocess
import sys
from importlib import import_module

import numpy as np

import rankbench.kernels
from rankbench import MF
from rankbench.data.views import Ratings


def main() -> None:
    """Import every kernel, take three steps of the simplest solver, and ask the command line how it is."""
    modules = list(pkgutil.walk_packages(rankbench.kernels.__path__, "rankbench.kernels."))
    names = [module.name for module in modules if not module.ispkg]
    assert names, "the wheel holds no kernels"
    for name in names:
        import_module(name)
    values = np.array([5.0, 1.0, 3.0, 4.0, 2.0, 5.0])
    train = Ratings.from_triples(np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), values, 2, 3)
    steps = MF(rank=2).steps(train, np.random.default_rng(0))
    before, *_, after = (next(steps).objective() for _ in range(3))
    assert after < before, f"the objective went from {before} to {after}"
    subprocess.run([sys.executable, "-m", "rankbench", "doctor"], check=True)
    print(f"{len(names)} kernels imported, a solver trained")


if __name__ == "__main__":
    main()
