"""The minimum of a convex function of one vector, also where steps are cut short or none is good."""

import numpy as np

from rankbench.methods import one_vector
from rankbench.methods.one_vector import minimum


class Bowl:
    """The sum of log cosh(x - centre), whose Newton steps lead too far from afar."""

    centre = np.array([3.0, -2.0])

    def value(self, x):
        return float(np.logaddexp(x - self.centre, self.centre - x).sum())

    def derivatives(self, x):
        slopes = np.tanh(x - self.centre)
        return slopes, np.diag(1 - slopes**2 + 1e-12)


class Rising(Bowl):
    """A function whose values contradict its gradient, so that no step lowers it."""

    def value(self, x):
        return float(np.abs(x).sum())


def test_the_minimum_is_found_from_afar():
    np.testing.assert_allclose(minimum(Bowl(), 2), Bowl.centre, atol=1e-9)


def test_where_no_step_lowers_the_value_the_search_ends_where_it_is():
    assert minimum(Rising(), 2).tolist() == [0.0, 0.0]


def test_the_search_ends_after_its_steps(monkeypatch):
    monkeypatch.setattr(one_vector, "_STEPS", 1)
    bowl = Bowl()
    assert bowl.value(Bowl.centre) < bowl.value(minimum(bowl, 2)) - 1e-3 < bowl.value(np.zeros(2))
