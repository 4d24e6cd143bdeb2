"""Random streams depend only on the seed and the names."""

import itertools

import numpy as np
import pytest

from rankbench.core.errors import UserError
from rankbench.core.streams import seed_of, stream


def first(*names):
    """The first number of a stream, as raw bits."""
    return stream(*names).bit_generator.random_raw()


def test_equal_names_give_equal_streams_and_nothing_drawn_elsewhere_matters():
    expected = stream(3, "data", "btl").random(5)
    stream(3, "other").random(100)
    np.random.default_rng().random(100)
    np.testing.assert_array_equal(stream(3, "data", "btl").random(5), expected)


def test_streams_differ_by_seed_name_order_and_number_of_names():
    names = [(), ("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",), ("a", ""), ("a", 1), ("a", 11), ("a", 1, 1)]
    streams = [first(seed, *each) for seed, each in itertools.product((0, 1, -1, 10), names)]
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize(
    ("names", "bits"),
    [
        ((0,), 5807993362788320832),
        ((0, "split", "entries", 0), 15811195814960371404),
        ((7, "fit", "SGD"), 4753129826515815354),
    ],
)
def test_the_streams_are_the_same_on_every_machine_and_in_every_version(names, bits):
    assert first(*names) == bits


def test_streams_of_neighbouring_names_are_unrelated():
    draws = np.array([stream(0, "user", i).random(200) for i in range(50)])
    correlations = np.corrcoef(draws)[np.triu_indices(50, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(200)


@pytest.mark.parametrize("seed", [-1, -(2**70), np.int64(-3)])
def test_a_seed_below_zero_is_an_error(seed):
    for name, given in (("seed", {"seed": seed}), ("rng", {"seed": 0, "rng": seed})):
        with pytest.raises(UserError, match=f"^{name}={seed} is out of range: must be at least 0$"):
            seed_of(**given)
    assert (seed_of(0), seed_of(2**70), seed_of(0, 5)) == (0, 2**70, 5)
