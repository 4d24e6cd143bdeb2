"""Intervals, decisions, data sets, published numbers and the study: known truths, known formulas, and the edges."""

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from rankbench.core.errors import UserError
from rankbench.statistics import decisions, study
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE, ranked
from rankbench.statistics.detectable import detectable
from rankbench.statistics.estimates import ONE_USER, ONE_VALUE, difference_of_users, mean_of_users
from rankbench.statistics.over_data import on_new_data, over_data
from rankbench.statistics.reproduced import AGREES, HIGHER, LOWER, UNDECIDED, Ours, Printed, reproduced
from rankbench.statistics.thresholds import thresholds
from rankbench.statistics.variation import linear, student, together, variation


@pytest.fixture(autouse=True)
def no_warning():
    """Whatever is given, nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# variation


def test_one_repetition_has_the_interval_of_student():
    values = np.random.default_rng(1).normal(size=(1, 50))
    values[0, 25:] = -values[0, :25]  # no skewness
    found = mean_of_users(values)
    theirs = stats.ttest_1samp(values[0], 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.repetitions == 1
    assert "one repetition" in found.reason


def test_variances_are_those_of_the_crossed_design():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(300, 1, 60)) + rng.normal(0, 0.5, (300, 8, 1)) + rng.normal(0, 2, (300, 8, 60))
    found = variation(table)
    assert found.by_user.mean() == pytest.approx(1 / 60, rel=0.05)
    assert found.by_repetition.mean() == pytest.approx((0.25 + 4 / 60) / 8, rel=0.08)
    assert found.by_cell.mean() == pytest.approx(4, rel=0.02)
    more = found.at(120, 16)
    assert more.error.mean() == pytest.approx(np.sqrt((1 + 4 / 16) / 120 + 0.25 / 16), rel=0.08)
    assert 0.3 < found.repetition_share.mean() < 0.7


def test_users_of_one_repetition_each_leave_the_variance_of_the_repetitions():
    rng = np.random.default_rng(3)
    values = np.full((6, 240), np.nan)
    for row in range(6):
        values[row, 40 * row : 40 * row + 40] = rng.normal(rng.normal(0, 2), 1, 40)
    found = mean_of_users(values)
    assert found.error == pytest.approx(np.nanmean(values, axis=1).std(ddof=1) / np.sqrt(6), rel=0.02)


def test_a_ratio_of_sums_is_linear_in_its_users():
    rng = np.random.default_rng(4)
    values, pairs = rng.random((3, 40)), rng.integers(1, 90, (3, 40)).astype(float)
    values[1, 4] = np.nan
    expected = [np.nansum(row * of) / of[~np.isnan(row)].sum() for row, of in zip(values, pairs, strict=True)]
    assert linear(values, pairs).mean(axis=1) == pytest.approx(expected)
    assert mean_of_users(values, pairs).mean == pytest.approx(np.mean(expected))


def test_the_deviate_is_the_one_whose_reach_is_the_mean():
    found = variation(np.random.default_rng(6).normal(0.3, 1, (4, 3, 20)))
    assert found.reach(found.normal_deviate()) == pytest.approx(np.abs(found.mean))


def test_all_differences_at_once_are_those_of_each_pair():
    table = np.random.default_rng(7).normal(size=(2, 4, 30))
    pair, both = variation(table[0] - table[1]), together(table).differences()
    assert both.by_user[0, 1] == pytest.approx(pair.by_user)
    assert both.by_repetition[0, 1] == pytest.approx(pair.by_repetition)


# intervals


@pytest.mark.one_in(3)
@pytest.mark.parametrize("of", ["average", "rate of .05", "ratio of sums", "heavy tails"])
@pytest.mark.parametrize(("users", "repetitions"), [(20, 1), (20, 3), (100, 5), (1000, 3)])
def test_intervals_cover_the_truth(of, users, repetitions):
    rng, runs, family = np.random.default_rng(users), 250, study.FAMILIES[of]
    limits = (0, 1) if family is study.rate else None
    held = 0
    for _ in range(runs):
        values, weights = family(rng, 2, repetitions, users)
        found = mean_of_users(values[0], weights, limits)
        held += found.low <= study.TRUE[of] <= found.high
    assert held / runs > 0.90  # 95 %, less 3.6 standard errors


def test_no_hit_among_twenty_users_is_no_proof_that_there_is_none():
    found = mean_of_users(np.zeros((3, 20)), limits=(0, 1))
    assert (found.low, found.high) == pytest.approx((0, stats.binomtest(0, 20).proportion_ci().high))
    assert mean_of_users(np.ones((1, 20)), limits=(0, 1)).low == pytest.approx(1 - found.high)
    nothing = difference_of_users(np.zeros((3, 20)), np.zeros((3, 20)), limits=(0, 1))
    assert nothing.low < -0.05 < 0.05 < nothing.high


def test_hits_and_misses_have_the_interval_of_clopper_and_pearson():
    found = mean_of_users(np.array([[1.0, 1.0] + 9 * [0.0]]), limits=(0.0, 1.0))
    exact = stats.binomtest(2, 11).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.02)


def test_few_hits_have_the_exact_interval_within_the_limits():
    values = np.zeros((1, 50))
    values[0, :2] = 1
    found = mean_of_users(values, limits=(0, 1))
    theirs = stats.binomtest(2, 50).proportion_ci()
    assert found.low <= theirs.low + 0.003
    assert found.high >= theirs.high - 0.003
    assert found.low >= 0


def test_hits_drawn_anew_in_each_repetition_count_as_more_trials_than_there_are_users():
    alike = np.zeros((40, 50))
    alike[:, :2] = 1
    drawn = (np.random.default_rng(5).random((40, 50)) < 0.01).astype(float)
    assert mean_of_users(alike, limits=(0, 1)).high == pytest.approx(
        stats.binomtest(2, 50).proportion_ci().high, abs=0.003
    )
    assert mean_of_users(drawn, limits=(0, 1)).high < 0.025 < stats.binomtest(0, 50).proportion_ci().high


def test_few_repetitions_leave_as_many_trials_as_korn_and_graubard_say():
    values = np.zeros((3, 40))
    values[0, :6] = values[1, 6:8] = 1
    share, spread = values.mean(), variation(linear(values))
    lost = stats.t.ppf(0.975, 39) / (spread.reach(stats.norm.ppf(0.975)) / spread.error)
    trials = share * (1 - share) / spread.error**2 * lost**2
    assert lost < 0.9
    assert mean_of_users(values, limits=(0, 1)).high == pytest.approx(
        stats.beta.ppf(0.975, share * trials + 1, trials * (1 - share))
    )


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.full((3, 7), np.nan), "no user"),
        (np.zeros((0, 7)), "no user"),
        (np.ones((3, 1)), ONE_USER),
        (np.full((3, 9), 0.4), ONE_VALUE),
        (np.random.default_rng(8).normal(size=(2, 9)), "2 repetitions are few"),
        (np.array([[1.0, 2, 3], [np.nan] * 3, [2, 2, 4]]), "1 repetition without values"),
    ],
)
def test_what_says_little_says_why(values, word):
    found = mean_of_users(values)
    assert word in found.reason
    assert found.high > found.low or found.reason == ONE_VALUE


def test_a_difference_without_common_users_has_no_interval():
    one = np.array([[1.0, np.nan]])
    assert difference_of_users(one, one[:, ::-1]).users == 0
    assert mean_of_users(np.array([[1.0, np.nan, 3]])).users == 2
    found = difference_of_users(np.arange(12.0).reshape(3, 4), np.zeros((3, 4)))
    assert -20 < found.low < found.high < 20


# decisions


def plain(k, repetitions, users, seed=0):
    return study.effects(np.random.default_rng(seed), k, repetitions, users)


def words(values, margin=0.0, better="higher", **more):
    return decisions.words(values, better, margin, **more)


def test_a_clear_difference_is_better_and_worse_in_the_metrics_direction():
    values = plain(2, 5, 200)
    values[0] += 3
    assert words(values) == [BETTER, WORSE]
    assert words(values, better="lower") == [WORSE, BETTER]
    found = ranked(values, "higher", 0.1)
    assert found.tiers == ((0,), (1,))
    assert found.best == 0
    assert found.decisions[0].difference.repetitions > 1
    assert found.first[0][0] > 0.99
    assert found.decisions[0].chance > 0.99
    assert found.decisions[1].p < 0.05


def test_one_repetition_never_says_more_than_on_this_split():
    values = plain(2, 1, 100)
    values[0] += 3
    assert all(each.difference.repetitions == 1 for each in ranked(values, "higher", 0.1).decisions)


def test_equal_within_a_wide_margin_and_open_within_a_narrow_one():
    values = plain(3, 5, 200)
    assert words(values, margin=2.0) == [EQUAL] * 3
    found = ranked(values, "higher", 0.01)
    assert OPEN in [each.word for each in found.decisions]
    assert found.tiers == (tuple(sorted(found.tiers[0], key=lambda place: -values[place].mean())),)
    assert "repetitions" in found.decisions[found.best].settled_by


def test_what_is_needed_settles_it():
    values = study.effects(np.random.default_rng(3), 2, 5, 50, repetition=0.1)
    values[0] += 0.25 - (values[0] - values[1]).mean()
    found = ranked(values, "higher", 0.0).decisions[0]
    assert found.word == OPEN
    assert 50 < found.users_needed < 2000
    again = 0
    for seed in range(40):
        more = study.effects(np.random.default_rng(seed), 2, 5, found.users_needed, repetition=0.1)
        more[0] += 0.25
        again += words(more)[0] == BETTER
    assert again > 22


@pytest.mark.slow
def test_of_equal_solvers_hardly_any_group_has_a_worse_one():
    for k, repetitions in ((2, 3), (10, 3), (20, 1)):
        wrong = sum(WORSE in words(plain(k, repetitions, 100, seed)) for seed in range(100))
        assert wrong <= 12  # of 5 expected, three standard errors


def test_the_threshold_of_two_solvers_is_that_of_the_normal_distribution():
    bar, closer = thresholds(together(plain(2, 3, 500)))
    assert bar == pytest.approx(1.96, abs=0.12)
    assert closer == pytest.approx(1.645, abs=0.1)
    assert thresholds(together(plain(20, 3, 500)))[0] > 3


@pytest.mark.parametrize("count", [7, 20, 100])
def test_the_repetitions_needed_are_the_fewest_that_would_show_the_difference(count):
    values = plain(2, 4, 80)
    values[0] += np.array([[0.9], [-0.8], [0.4], [-0.5]])  # repetitions matter most
    group = together(values)
    pairs = group.differences()
    parts = {part: getattr(pairs, part)[0, 1] for part in ("mean", "by_user", "by_repetition", "by_cell", "freedom")}
    enough = detectable(replace(pairs, **parts).at(80, count), thresholds(group)[0])
    values[0] += 1.0001 * enough - (group.means[0] - group.means[1])
    assert {each.repetitions_needed for each in ranked(values, "higher", 0.0).decisions} == {count}


def test_quantiles_of_many_degrees_of_freedom_are_those_of_each():
    degrees = np.random.default_rng(0).integers(1, 9, 50)
    assert student(degrees, 1.96).tolist() == [float(student(int(one), 1.96)) for one in degrees]
    assert student(2, 1.96) == pytest.approx(stats.t(2).isf(stats.norm.sf(1.96)))


def test_a_stated_difference_shows_as_often_as_stated():
    truth = study._truth(5, 100, 1)
    planted, seen = detectable(truth, 1.96), 0
    for seed in range(200):
        values = plain(2, 5, 100, seed)
        values[0] += planted
        seen += words(values)[0] == BETTER
    assert 0.7 < seen / 200 < 0.9


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.full((2, 3, 5), np.nan), [OPEN, OPEN]),
        (np.zeros((0, 3, 5)), []),
        (plain(1, 3, 5), [OPEN]),
        (plain(2, 3, 1), [OPEN, OPEN]),
        (np.full((2, 3, 5), 0.5), [EQUAL, EQUAL]),
        (np.stack([np.ones((3, 9)), np.full((3, 9), 0.5)]), [BETTER, WORSE]),
        (np.stack([np.ones((3, 9)), np.full((3, 9), np.nan), np.zeros((3, 9))]), [BETTER, OPEN, WORSE]),
    ],
)
def test_whatever_is_given_there_is_a_verdict_in_words(values, expected):
    found = ranked(values, "higher", 0.01)
    assert [each.word for each in found.decisions] == expected
    assert all(each.word and each.reason for each in found.decisions)


def test_rates_without_any_hit_are_not_equal_for_that():
    assert words(np.zeros((2, 3, 20)), margin=0.01, limits=(0, 1)) == [OPEN, OPEN]
    assert words(np.zeros((2, 3, 20)), margin=0.01, better="lower", limits=(0, 1)) == [OPEN, OPEN]


def test_a_wrong_question_is_refused():
    for values, better, margin in (
        (np.zeros((2, 3)), "higher", 0),
        (plain(2, 1, 3), "up", 0),
    ):
        with pytest.raises(UserError, match="verdicts on values"):
            ranked(values, better, margin)
    with pytest.raises(UserError, match="margin=-1 is out of range: must be at least 0"):
        ranked(plain(2, 1, 3), "lower", -1)


def test_a_million_users_are_judged():
    values = np.random.default_rng(9).normal(size=(2, 1, 1_000_000))
    values[0] += 0.01
    assert words(values) == [BETTER, WORSE]


def test_twenty_solvers_of_6040_users_are_judged_in_time():
    values = plain(20, 5, 6040)
    start = time.perf_counter()
    ranked(values, "higher", 0.001)
    assert time.perf_counter() - start < 3  # a quarter of four metrics' three seconds, on a loaded machine


# several data sets


def test_five_data_sets_can_tell_the_first_of_three_from_the_last():
    values = np.array([[3.0] * 5, [2.0] * 5, [1.0] * 5]) + np.arange(5)
    found = over_data(values, "higher")
    assert found.ranks == (1, 2, 3)
    assert found.p[0][2] < 0.01
    assert found.p[0][1] > 0.05
    assert found.least == pytest.approx(6.0**-4)
    assert not found.reason
    assert over_data(values, "lower").ranks == (3, 2, 1)


@pytest.mark.slow
def test_of_alike_solvers_few_groups_have_a_difference_over_data_sets():
    rng = np.random.default_rng(10)
    wrong = sum(np.min(over_data(rng.normal(size=(4, 6)), "higher", seed).p) < 0.05 for seed in range(60))
    assert wrong <= 8


def test_too_few_data_sets_are_said_to_be_too_few():
    assert "too few" in over_data(np.arange(8.0).reshape(2, 4), "higher").reason
    assert "fewer than two" in over_data(np.full((3, 4), np.nan), "higher").reason
    with pytest.raises(UserError, match="1 dimensions"):
        over_data(np.zeros(3), "higher")
    assert "1 data sets" in on_new_data([1.0, np.nan], [0.1, 0.1]).reason
    assert "0 data sets" in on_new_data([], []).reason


def test_the_chance_on_a_new_data_set_covers_the_true_one():
    rng, held = np.random.default_rng(11), 0
    true = stats.norm.cdf(0.5)
    for _ in range(300):
        errors = rng.uniform(0.1, 0.5, 8)
        found = on_new_data(rng.normal(0.5, 1, 8) + rng.normal(0, errors), errors)
        held += found.chance_low <= true <= found.chance_high
    assert held / 300 > 0.9


def test_the_spread_between_data_sets_makes_the_weighted_squares_as_large_as_their_degrees_of_freedom():
    given, errors = np.array([0.1, 0.9, 0.4, 2.0]), np.array([0.1, 0.3, 0.2, 0.5])

    def excess(between):
        weights = 1 / (errors**2 + between)
        return weights @ (given - weights @ given / weights.sum()) ** 2 - 3

    assert on_new_data(given, errors).spread ** 2 == pytest.approx(optimize.brentq(excess, 0, 10))


def test_data_sets_that_agree_leave_no_spread():
    alike = on_new_data([0.2, 0.2, 0.2], [0.1, 0.1, 0.1])
    assert alike.spread == pytest.approx(0, abs=1e-6)
    assert on_new_data([0.0, 0.0], [0.0, 0.0]).chance == pytest.approx(0.5)
    assert "hardly known" in on_new_data([1.0, -0.9], [0.1, 0.1]).reason


# published numbers


def test_both_sides_of_a_published_number_are_weighed():
    ours = Ours(1.054, 0.003, 4, 5, 0.007)
    assert reproduced(ours, Printed(1.04, 2, 0.05, 10)).word == AGREES
    assert reproduced(ours, Printed(1.04, 3, 0.001, 10)).word == HIGHER
    assert reproduced(ours, Printed(1.2, 2, 0.05, 10)).word == LOWER
    assert reproduced(Ours(0.504, 0, 4, 5, 0), Printed(0.50, 2, 0.0, 5)).word == AGREES  # it prints as .50


def test_a_number_without_a_spread_is_one_draw():
    found = reproduced(Ours(1.054, 0.003, 4, 5, 0.007), Printed(1.04, 2))
    assert found.word == AGREES
    assert "one draw" in found.reason
    assert "varying like ours" in reproduced(Ours(1.054, 0.003, 4, 5, 0.007), Printed(1.04, 2, None, 5)).reason


@pytest.mark.parametrize(
    "ours", [Ours(1, 0.1, 9, 1, 0.1), Ours(np.nan, 0.1, 9, 5, 0.1), Ours(1, 0.1, 0, 5, 0.1), Ours(1, 0, 4, 5, 0)]
)
def test_what_cannot_be_told_is_said(ours):
    found = reproduced(ours, Printed(1.0, 2))
    assert found.word == UNDECIDED
    assert found.reason


# the study


def called_worse(spreads, repetitions, groups=200):
    """The share of groups of equal solvers in which any is called worse, by how far a repetition moves each of them."""
    wrong = 0
    for seed in range(groups):
        rng = np.random.default_rng((seed, len(spreads), repetitions))
        moved = rng.normal(0, 1, (len(spreads), repetitions, 1)) * np.array(spreads)[:, None, None]
        values = rng.normal(0.7, 0.1, (1, 1, 200)) + moved + rng.normal(0, 0.05, (len(spreads), repetitions, 200))
        wrong += WORSE in words(values)
    return wrong / groups


@pytest.mark.slow
@pytest.mark.parametrize(("spreads", "repetitions"), [([0.002, 0.02], 3), ([0.002] * 3 + [0.02], 2)])
def test_a_solver_that_varies_more_than_the_others_is_no_reason_to_call_one_worse(spreads, repetitions):
    assert called_worse(spreads, repetitions) <= 0.08


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("repetitions", [3, 10])
def test_numbers_of_the_same_solver_mostly_agree(known, repetitions):
    """A paper's five repetitions and ours are of one solver on the same users: how often they are called different."""
    wrong = 0
    for seed in range(300):
        values = study.effects(np.random.default_rng((seed, repetitions)), 1, repetitions + 5, 100)[0]
        ours, theirs = values[:repetitions].mean(axis=1), values[repetitions:].mean(axis=1)
        own = mean_of_users(values[:repetitions])
        printed = Printed(float(theirs.mean()), 4, float(theirs.std(ddof=1)), 5) if known else Printed(theirs[0], 4)
        found = reproduced(Ours(own.mean, own.error, own.freedom, repetitions, float(ours.std(ddof=1))), printed)
        wrong += found.word != AGREES
    assert wrong / 300 <= 0.08
