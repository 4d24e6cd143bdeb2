"""Times that stand in a file as texts."""

import numpy as np
import pytest

from rankbench.data.tables.times import as_times, first_unread, kind_of, whole


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1600102000", "digits"), ("1600102000.0", "floats"), ("1.600102e+18", "floats"), ("2020-01-31", "dates"),
        ("", "dates"), ("soon", "dates"),
    ],
)  # fmt: skip
def test_the_first_time_tells_how_they_are_written(text, kind):
    assert kind_of(text) == kind


def test_floats_are_the_whole_numbers_that_they_are():
    assert as_times(np.array(["16.0", "1.7e+01"]), "floats").tolist() == [16, 17]
    for wrong in (0.5, np.nan, np.inf, 2.0**63):
        with pytest.raises(ValueError, match="no whole number"):
            whole(np.array([1.0, wrong]))


@pytest.mark.parametrize("place", range(6))
def test_the_first_time_that_is_none_is_found_wherever_it_stands(place):
    texts = ["7"] * 5
    texts[place:] = ["x"] * (5 - place)
    assert first_unread(texts, "digits") == place
