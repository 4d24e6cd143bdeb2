"""Solvers: one file per algorithm, none of which imports another; this list is all that binds them."""

from typing import Any

from rankbench.contract import DECLARATIONS
from rankbench.errors import UserError
from rankbench.specs import Catalogue

SOLVERS = Catalogue(
    "solver",
    {
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "sgd": "rankbench.solvers.sgd:SGD",
    },
    "rankbench.solvers",
    "rankbench list solvers",
)


def make(text: str) -> Any:
    """The solver that `name[key=value,...]` describes, checked against the contract."""
    solver = SOLVERS.make(text)
    absent = [name for name in (*DECLARATIONS, "steps") if getattr(solver, name, None) is None]
    if absent:
        raise UserError(f"solver {text!r} does not say its {', '.join(absent)}: see rankbench.contract.Solver")
    return solver
