"""Forecasts of how long cells take by the clock, against plays that can be followed by hand and by bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbench.execution.forecast import HANDING, Job, clock_seconds


def jobs(*seconds):
    """Jobs of these lengths that wait for nothing."""
    return [Job(str(number), length) for number, length in enumerate(seconds)]


@pytest.mark.parametrize(
    ("lengths", "places", "seconds"),
    [((), 2, 0.0), ((3, 1, 1), 1, 5.0), ((3, 1, 1, 1), 2, 3.0), ((1, 1, 3), 2, 4.0), ((2, 2), 5, 2.0)],
)
def test_jobs_begin_in_order_wherever_a_place_is_free(lengths, places, seconds):
    assert clock_seconds(jobs(*lengths), places, handing=0.0) == seconds


def test_a_job_that_runs_alone_waits_for_all_before_it_and_all_after_wait_for_it():
    first, second, third = jobs(2, 1, 3)
    alone = Job("alone", 4.0, alone=True)
    assert clock_seconds([first, second, alone, third], 2, handing=0.0) == 2 + 4 + 3


def test_jobs_that_run_alone_do_so_on_as_many_nodes_as_there_are():
    first, second, third, last = jobs(2, 1, 3, 1)
    alone = [Job("a", 4.0, alone=True), Job("b", 5.0, alone=True), Job("c", 2.0, alone=True)]
    assert clock_seconds([first, second, *alone, third, last], 8, 2, handing=0.0) == 2 + (4 + 2) + 3


def test_a_trial_waits_for_the_one_that_it_starts_from_and_those_after_it_wait_too():
    first, last = jobs(5, 1)
    follower = Job("follower", 2.0, before=first.key)
    assert clock_seconds([first, follower, last], 3, handing=0.0) == 5 + 2
    assert clock_seconds([first, last, follower], 3, handing=0.0) == 5 + 2
    assert clock_seconds([follower, last], 1, handing=0.0) == 3  # what it starts from has ended long ago


def test_short_jobs_on_many_places_take_as_long_as_handing_them_out():
    assert clock_seconds(jobs(*[0.01] * 100), 50, handing=0.1) == pytest.approx(100 * 0.1 + 0.01)
    assert clock_seconds(jobs(1), 1) == 1 + HANDING


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=30), st.integers(1, 8))
def test_it_lies_between_its_bounds(lengths, places):
    """No place does two jobs at a time, and no place is idle while a job waits (Graham's bound for lists)."""
    found, whole, longest = clock_seconds(jobs(*lengths), places, handing=0.0), sum(lengths), max(lengths)
    assert max(whole / places, longest) - 1e-9 <= found <= whole / places + longest * (1 - 1 / places) + 1e-9
