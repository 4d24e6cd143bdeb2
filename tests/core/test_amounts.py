"""Numbers with what they count."""

import pytest

from rankbench.core.amounts import amount


@pytest.mark.parametrize(("number", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (2000, "2,000 steps")])
def test_one_is_singular(number, text):
    assert amount(number, "step") == text
