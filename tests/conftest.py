"""Settings for all tests: full assertion messages from the inherited solver tests, no hypothesis deadlines."""

import coverage
import pytest
from hypothesis import settings

pytest.register_assert_rewrite("solvers.contract")
settings.register_profile("rankbench", deadline=None)
settings.load_profile("rankbench")


def pytest_sessionfinish() -> None:
    """Save what coverage has measured, if it does: xdist kills a worker that takes long to do so when it exits."""
    if running := coverage.Coverage.current():
        running.save()
