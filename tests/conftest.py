"""What holds for all tests: full messages from the inherited contract, no deadlines on a busy machine."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("solvers.contract")
settings.register_profile("rankbench", deadline=None)
settings.load_profile("rankbench")
