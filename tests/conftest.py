"""Settings for all tests: full assertion messages from the inherited solver tests, no hypothesis deadlines."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("solvers.contract")
settings.register_profile("rankbench", deadline=None)
settings.load_profile("rankbench")
