"""Search spaces: random candidates, grids, and errors before anything runs."""

from collections import Counter
from math import isclose

import numpy as np
import pytest
import scipy.stats
from helpers import with_solver
from hypothesis import given
from hypothesis import strategies as st

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range, Tune, described, read_space

LAM = Range(1.0, 1000.0, "log")


def draws(values, n, seed=0):
    """So many draws from a range."""
    rng = np.random.default_rng(seed)
    return [values.draw(rng) for _ in range(n)]


def candidates(space, trials=8, method="random", seed=0, draws="random"):
    """What a solver of this space would be tried with."""
    tune = Tune({"sgd": space}, method, trials, draws=draws)
    return tune.candidates("sgd", np.random.default_rng(seed))


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e6), st.sampled_from(["linear", "log"]), st.integers(0, 2**32))
def test_a_number_that_is_drawn_lies_in_its_range_and_can_be_copied_by_hand(low, factor, scale, seed):
    values = Range(low, low * factor, scale)
    for value in draws(values, 20, seed):
        assert values.low <= value <= values.high
        assert value in (values.low, values.high) or value == float(f"{value:.3g}")


@given(st.integers(1, 50), st.integers(1, 5000), st.sampled_from(["linear", "log"]), st.integers(0, 2**32))
def test_an_integer_that_is_drawn_is_one_and_lies_in_its_range(low, width, scale, seed):
    for value in draws(Range(low, low + width, scale), 20, seed):
        assert type(value) is int and low <= value <= low + width


@pytest.mark.parametrize(
    ("values", "law"),
    [(LAM, scipy.stats.loguniform(1, 1000)), (Range(-2.0, 3.0), scipy.stats.uniform(-2, 5))],
)
def test_draws_follow_the_scale(values, law):
    assert scipy.stats.kstest(draws(values, 4000), law.cdf).pvalue > 0.01


def test_every_integer_gets_its_share_of_the_scale():
    edges = np.arange(1, 11) - 0.5
    for scale, shares in (
        ("linear", np.full(9, 1 / 9)),
        ("log", np.diff(np.log(edges)) / np.log(edges[-1] / edges[0])),
    ):
        found = np.bincount(draws(Range(1, 9, scale), 5000), minlength=10)[1:]
        assert scipy.stats.chisquare(found, 5000 * shares).pvalue > 0.01


def test_a_grid_lies_evenly_on_its_scale_ends_included():
    assert Range(1.0, 1000.0, "log", 4).grid() == pytest.approx(np.geomspace(1, 1000, 4))
    assert Range(0.0, 1.0, "linear", 5).grid() == pytest.approx(np.linspace(0, 1, 5))
    assert Range(1, 100, "log", 3).grid() == (1, 10, 100)


def test_a_grid_tries_every_combination():
    found = candidates({"lam": Range(1.0, 100.0, "log", 3), "rank": (2, 5)}, 6, "grid")
    assert sorted((entry["lam"], entry["rank"]) for entry in found) == [(m, r) for m in (1, 10, 100) for r in (2, 5)]


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_every_space_that_has_room_gets_the_same_number_of_trials_and_none_twice(trials, seed):
    spaces = (
        {"lam": LAM},
        {"rank": Range(1, 40)},
        {"lam": LAM, "rank": (2, 5)},
        {"rank": tuple(range(40)), "loss": ("a", "b")},
    )
    for space in spaces:
        found = candidates(space, trials, seed=seed)
        assert len(found) == trials == len({tuple(entry.values()) for entry in found})


def test_a_space_with_less_room_is_tried_whole():
    assert candidates({"rank": (2, 5), "loss": ("a", "b")}) == [
        {"loss": loss, "rank": rank} for loss in ("a", "b") for rank in (2, 5)
    ]
    assert [entry["rank"] for entry in candidates({"rank": Range(3, 5)})] == [3, 4, 5]
    assert candidates({}) == [{}] == candidates({}, method="grid")


def test_a_range_that_three_digits_cannot_part_gives_what_there_is():
    assert sorted(entry["lam"] for entry in candidates({"lam": Range(1.0, 1.017)})) == [1.0, 1.01, 1.017]


def test_more_trials_try_the_same_settings_first():
    space = {"lam": LAM, "rank": (2, 5, 10)}
    assert candidates(space, 20)[:8] == candidates(space, 8)


def test_sobol_draws_lie_evenly_and_more_of_them_begin_with_the_same():
    space = {"lam": LAM, "step": Range(0.0, 1.0)}
    for seed in range(20):
        found = candidates(space, 16, seed=seed, draws="sobol")
        assert len({tuple(entry.values()) for entry in found}) == 16
        eighths = Counter(min(7, int(8 * np.log10(entry["lam"]) / 3)) for entry in found)
        assert set(eighths.values()) <= {1, 2, 3} and len(eighths) == 8  # three digits may cross a border
        assert candidates(space, 5, seed=seed, draws="sobol") == found[:5]
    assert candidates(space, 8, draws="sobol") != candidates(space, 8, seed=1, draws="sobol")


def test_sobol_draws_leave_smaller_gaps_than_independent_ones():
    def gap(draws, seed):
        shares = sorted(np.log10(entry["lam"]) / 3 for entry in candidates({"lam": LAM}, 16, seed=seed, draws=draws))
        return max(np.diff([0.0, *shares, 1.0]))

    for seed in range(20):
        assert gap("sobol", seed) < 0.13  # two cells of a sixteenth each
    assert np.mean([gap("random", seed) for seed in range(20)]) > 0.18


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_sobol_draws_are_as_many_as_random_ones_and_none_twice(trials, seed):
    for space in ({"rank": Range(1, 40)}, {"lam": LAM, "rank": (2, 5)}, {"rank": (*range(40),), "loss": ("a", "b")}):
        found = candidates(space, trials, seed=seed, draws="sobol")
        assert len(found) == trials == len({tuple(entry.values()) for entry in found})
    assert len(candidates({"lam": Range(1.0, 1.017)}, draws="sobol")) == 3


def test_a_grid_draws_nothing():
    space = {"lam": (1.0, 2.0, 3.0)}
    assert candidates(space, 3, "grid") == candidates(space, 3, "grid", seed=1, draws="sobol")


def test_a_sentence_says_that_draws_are_spread():
    tune = Tune({"sgd": {"lam": (1.0, 2.0)}}, draws="sobol")
    assert described(tune, ["kendall"]).startswith("8 evenly spread (Sobol) trials for each solver")


def test_the_order_in_a_file_is_no_part_of_what_is_tried():
    assert candidates({"lam": LAM, "rank": (2, 5)}) == candidates({"rank": (2, 5), "lam": LAM})


def test_a_space_belongs_to_the_solver_as_it_is_written_or_to_its_name():
    tune = Tune({"sgd": {"lam": LAM, "step": (0.1, 0.2)}, "sgd[rank=5]": {"lam": (1.0, 2.0)}})
    assert tune.space_of("sgd[rank=5]") == {"lam": (1.0, 2.0)}
    assert set(tune.space_of("sgd[rank=6]")) == {"lam", "step"}
    assert set(tune.space_of("sgd[step=0.3]")) == {"lam"}  # what is written is fixed
    assert tune.space_of("global") == {}


def test_a_users_solver_is_found_without_its_folder(tmp_path):
    solver = with_solver(tmp_path)
    fitted = Tune({"mine.py:Mine": {"mode": ["a", "b"]}}).fitted((solver,))
    assert fitted.space_of(solver) == {"mode": ("a", "b")}


# ---- what a file says ----

HEAD = (
    'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\n'
    'solvers=["global", "sgd[rank=2]"]\nmetrics=["kendall", "pairwise-error"]\n'
)
SPACE = (
    "[tune.space.global]\nlam={low=1, high=100, scale='log'}\n"
    "[tune.space.sgd]\nlam=[1, 10.5]\nstep={low=0.01, high=1}\n"
)


def read(tail, full=False):
    """The tuning that a file with this tail asks for."""
    return experiments.read("x", "x.toml", HEAD + tail, full).tune


def test_what_is_not_said_is_eight_random_trials_for_each_repetition():
    tune = read(SPACE)
    assert (tune.method, tune.trials, tune.validation, tune.per) == ("random", 8, "entries[test=0.2]", "repetition")


def test_values_are_of_the_settings_own_type():
    space = read("[tune.space.global]\n[tune.space.sgd]\nlam=[1, 10]\ndecay={low=0, high=1}\n").space["sgd"]
    assert [type(value) for value in (*space["lam"], space["decay"].low, space["decay"].high)] == [float] * 4


def test_a_file_without_tuning_tunes_nothing():
    assert read("") is None


def test_the_full_profile_may_say_a_part():
    tail = SPACE + "[full.tune]\ntrials=20\n"
    assert (read(tail).trials, read(tail, full=True).trials) == (8, 20)
    assert read(tail, full=True).space == read(tail).space


SGD = "[tune.space.sgd]\n"


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("[tune]\ntrails=3\n" + SPACE, r"x.toml: \[tune\]: unknown key 'trails'; did you mean 'trials'"),
        ("[tune]\ntrials=0\n" + SPACE, r"x.toml: \[tune\]: trials=0 is out of range: must be at least 1"),
        ("[tune]\ntrials='many'\n" + SPACE, "trials=many is not of type int"),
        ("[tune]\nmethod='gird'\n" + SPACE, "did you mean 'grid'"),
        ("[tune]\nper='splits'\n" + SPACE, "did you mean 'split'"),
        ("[tune]\nmetric='kendal'\n" + SPACE, "did you mean 'kendall'"),
        ("[tune]\nmetric=3\n" + SPACE, "unknown metric '3'"),
        ("[tune]\nvalidation='entires'\n" + SPACE, "did you mean 'entries'"),
        ("[tune]\nspace=3\n", "space must hold a table for each solver"),
        (SPACE.replace("global", "gobal"), r"unknown solver in \[tune.space\]: 'gobal'; did you mean 'global'"),
        ("[tune.space.global]\n", r"no space for sgd\[rank=2\]: add \[tune.space.\"sgd\"\]"),
        (SPACE.replace("high=100,", ""), "space of global: lam: a range needs its high"),
        (SPACE.replace("high=100", "hihg=100"), "space of global: lam: unknown key 'hihg'; did you mean 'high'"),
        (SPACE.replace("high=100", "high=1"), "space of global: lam: low=1 must be below high=1"),
        (SPACE.replace("low=1", "low=0"), "low=0 must be above 0 on a log scale"),
        (SPACE.replace("low=1", "low='a'"), "low=a must be a number"),
        (SPACE.replace("high=100", "high=inf"), "high=inf must be a number"),
        (SPACE.replace("'log'", "'lgo'"), "did you mean 'log'"),
        (SPACE.replace("[1, 10.5]", "[]"), "space of sgd: lam: write a list of choices, or a range"),
        (SPACE.replace("[1, 10.5]", "3"), "space of sgd: lam: write a list of choices, or a range"),
        (SPACE.replace("[1, 10.5]", "[1, -1]"), "sgd: lam=-1 is out of range: must be at least 1e-12"),
        (SPACE.replace("[1, 10.5]", "[1, 1.0]"), "lists a choice twice: 1, 1"),
        (SPACE.replace("low=0.01", "low=0"), "sgd: step=0 is out of range: must be at least 1e-12"),
        (SPACE.replace("step", "stpe"), "unknown setting of sgd: 'stpe'; did you mean 'step'"),
        (SPACE.replace("step=", "rank="), r"sgd\[rank=2\] fixes rank, which its space varies"),
        (SPACE.replace("step={low=0.01, high=1}", "loss={low=1, high=2}"), "sgd: unknown value of loss"),
        (SPACE.replace("high=1}", "high=1, points=3}"), "points needs method"),
        ("[tune]\nmethod='grid'\n" + SPACE, "space of global: lam: a grid needs a number of points"),
        (
            "[tune]\nmethod='grid'\ntrials=3\n"
            + SPACE.replace("100,", "100, points=3,").replace("high=1}", "high=1, points=2}"),
            r"the grid of sgd\[rank=2\] has 4 settings, not trials=3",
        ),
    ],
)
def test_a_mistake_names_file_solver_and_setting(tail, message):
    with pytest.raises(UserError, match=message) as raised:
        read(tail)
    assert str(raised.value).startswith("x.toml: [tune]: ")


def test_an_integer_setting_takes_no_fractions_and_a_grid_no_value_twice(tmp_path):
    tail = "[tune]\nmethod='grid'\ntrials=9\n[tune.space.global]\n[tune.space.\"sgd[rank=2]\"]\n"
    assert read(tail + "lam=[1,2,3,4,5,6,7,8,9]\n").trials == 9
    head = HEAD.replace("sgd[rank=2]", "sgd")
    for values, message in (
        ("{low=1, high=2.5, points=9}", "rank=2.5 is not of type int"),
        ("{low=1, high=3, points=9}", "gives a value twice"),
    ):
        text = head + tail.replace("sgd[rank=2]", "sgd") + f"rank={values}\n"
        with pytest.raises(UserError, match=message):
            experiments.read("x", "x.toml", text)


def test_a_text_takes_no_range(tmp_path):
    with pytest.raises(UserError, match=r"space of .*: mode: a range needs a number setting"):
        Tune({"mine.py:Mine": {"mode": Range(1, 2)}}).fitted((with_solver(tmp_path),))


# ---- what a command line says ----


def test_a_command_line_says_ranges_and_choices():
    space = read_space(["lam=0.5..1e3:log", "rank=2..8", "loss=logistic|squared-hinge"])
    assert space == {"lam": Range(0.5, 1e3, "log"), "rank": Range(2, 8), "loss": ("logistic", "squared-hinge")}
    assert isclose(space["lam"].high, 1000) and space["rank"].whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lam", "write it like lam=1..1000:log or rank=5|10|20"),
        ("=1..2", "write it like lam=1..1000:log or rank=5|10|20"),
        ("lam=1..two", "'two' is not a number"),
        ("lam=3..2", "low=3 must be below high=2"),
        ("lam=1..2:lgo", "did you mean 'log'"),
    ],
)
def test_a_space_that_cannot_be_read_says_how_to_write_it(text, message):
    with pytest.raises(UserError, match="--space ") as raised:
        read_space([text])
    assert message in str(raised.value)


def test_a_setting_has_one_space():
    with pytest.raises(UserError, match="--space gives lam twice"):
        read_space(["lam=1..2", "lam=3|4"])


@pytest.mark.parametrize(
    ("trials", "per", "metric", "sentence"),
    [
        (1, "split", "", "1 trial for each solver, or its whole space where that is smaller; the best kendall on "
         "entries[test=0.2] of the first repetition's training part is chosen"),
        (8, "repetition", "ndcg@5", "8 random trials for each solver, or its whole space where that is smaller; the "
         "best ndcg@5 on entries[test=0.2] of each repetition's training part is chosen"),
    ],
)  # fmt: skip
def test_a_sentence_says_how_solvers_were_tuned(trials, per, metric, sentence):
    tune = Tune({"sgd": {"lam": (1.0, 2.0)}}, trials=trials, per=per, metric=metric, validation="entries[test=0.2]")
    assert described(tune, ["kendall", "ndcg@5"]) == sentence
