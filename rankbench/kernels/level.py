"""The choice of the instruction set: some kernels are built several times, and the fastest that can run is imported.

    rankbench/kernels/solvers/altsvm...so                      the baseline: runs on every processor of its kind
    rankbench/kernels/levels/x86-64-v3/solvers/altsvm...so     with AVX2: most Intel and AMD processors since 2015

Results do not depend on the level: sums have a fixed number of lanes, and no multiplication is fused with an addition.
Only kernels that get faster have levels; for the others the baseline's file is imported at every level. The
environment variable RANKBENCH_LEVEL chooses a level by its name, for tests and measurements.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rankbench.core.errors import UserError

BASELINE = "baseline"
_FOLDER = Path(__file__).parent / "levels"


def usable(processor_has: Callable[..., bool]) -> list[str]:
    """The levels that are built and that this processor has, the fastest first; the baseline is always there."""
    built = sorted({path.parents[1].name for path in _FOLDER.glob("*/*/*")}, reverse=True)
    return [*(level for level in built if processor_has(level=level)), BASELINE]


def choose(levels: Sequence[str]) -> str:
    """The one of these levels that RANKBENCH_LEVEL asks for, or the first."""
    asked = os.environ.get("RANKBENCH_LEVEL") or levels[0]
    if asked not in levels:
        problem = f"RANKBENCH_LEVEL={asked!r} is not built here, or not for this processor"
        raise UserError(problem, remedy=f"unset it, or choose {' or '.join(levels)}")
    return asked


def enter(level: str) -> None:
    """Let imports of kernels look for this level's files first, and then for the baseline's."""
    for folder in sorted((_FOLDER / level).glob("*")):
        import_module(f"rankbench.kernels.{folder.name}").__path__.insert(0, str(folder))
