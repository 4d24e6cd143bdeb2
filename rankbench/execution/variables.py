"""The environment variables by which the fork server is told where to import from, and how they become as before."""

import os

IMPORTING = ("PYTHONPATH", "PYTHONSAFEPATH")
AS_GIVEN = "RANKBENCH_"  # before their names: their values before, empty if there was none


def restore() -> None:
    """Give the variables the values that they had, if they were changed."""
    for name in IMPORTING:
        before = os.environ.pop(f"{AS_GIVEN}{name}", None)
        if before is not None:
            os.environ.pop(name, None)
            os.environ |= {name: before} if before else {}
