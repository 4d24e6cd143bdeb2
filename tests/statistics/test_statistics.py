"""Intervals, paired tests and rankings: against SciPy, against what they promise, and at the edges."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rankbench import statistics
from rankbench.core.errors import UserError
from rankbench.statistics import Sample, contrast, contrasts, resampling
from rankbench.statistics.across import ranking
from rankbench.statistics.permutation import detectable, holm, p_values
from rankbench.statistics.resampling import affordable, bca, counts, resampled
from rankbench.statistics.samples import paired
from rankbench.statistics.verdicts import effect_influences, intervals


def sample(values, weights=None):
    """A sample of one repetition."""
    return several([values], None if weights is None else [weights])


def several(values, weights=None):
    """A sample of a repetition for each row."""
    rows, more = (None if table is None else dict(enumerate(np.asarray(table, float))) for table in (values, weights))
    return Sample.of(rows, more)


def skewed(rng, n):
    """Values as those of a metric: between 0 and 1, most of them high."""
    return rng.beta(5, 1.5, n)


# intervals


@pytest.mark.parametrize("n", [12, 60])
def test_an_interval_is_that_of_scipy(n):
    values = skewed(np.random.default_rng(n), n)
    (found,) = intervals([sample(values)])
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    width = theirs.high - theirs.low
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    assert found.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_the_interval_of_a_ratio_is_that_of_scipy():
    rng = np.random.default_rng(3)
    values, pairs = skewed(rng, 80), rng.integers(1, 400, 80).astype(float)

    def ratio(above, below, axis):
        return above.sum(axis) / below.sum(axis)

    theirs = stats.bootstrap(
        (values * pairs, pairs), ratio, paired=True, n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    (found,) = intervals([sample(values, pairs)])
    assert found.mean == pytest.approx(values @ pairs / pairs.sum(), rel=1e-14)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))


def test_influences_are_the_derivatives_of_the_mean_by_each_users_weight():
    rng = np.random.default_rng(5)
    values, weights = rng.random((3, 7)), rng.random((3, 7))
    values[1, 2] = values[2, 2] = values[0, 5] = np.nan
    whole = several(values, weights)
    for user in range(7):
        moved = np.ones(7)
        moved[user] += 1e-6
        step = several(values, weights * moved).mean() - whole.mean()
        assert whole.influences()[user] == pytest.approx(step / 1e-6, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("n", [20, 150])
def test_intervals_cover_the_true_mean_about_as_often_as_they_say(n):
    rng, runs, true = np.random.default_rng(n), 800, 5 / 6.5
    covered = 0
    blocks = np.concatenate(list(counts(n, 2000, seed=7)))
    for _ in range(runs):
        values = skewed(rng, n)
        low, high = bca(values.mean(), blocks @ values / n, (values - values.mean()) / n)
        covered += low <= true <= high
    wanted = 0.95 if n > 100 else 0.93  # with twenty users from a skewed distribution a little less
    assert covered / runs > wanted - 3 * np.sqrt(wanted * (1 - wanted) / runs)


def test_a_users_repetitions_stay_together():
    rng = np.random.default_rng(0)
    users = rng.random(200)
    once, (often,) = intervals([sample(users)])[0], intervals([several([users] * 5)])
    assert (often.low, often.high) == pytest.approx((once.low, once.high), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_repetitions_that_leave_out_a_user_each_are_one_sample_of_these_users(weighted):
    rng = np.random.default_rng(7)
    values, pairs = skewed(rng, 12), rng.integers(1, 9, 12).astype(float)
    apart = np.where(np.eye(12, 15, dtype=bool), np.append(values, [np.nan] * 3), np.nan)
    weights = np.tile(np.append(pairs, [0.0] * 3), (12, 1))
    (found,), (expected,) = (
        intervals([one]) for one in (several(apart, weights if weighted else None), sample(values))
    )
    assert (found.mean, found.users) == (pytest.approx(values.mean()), 12)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.low < found.mean < found.high


def test_repetitions_with_users_of_their_own_count_alike_whatever_their_sizes():
    apart = np.array([[1.0, 0.0, np.nan, np.nan, np.nan], [np.nan, np.nan, 0.2, 0.4, 0.6]])
    (found,) = intervals([several(apart)])
    assert found.mean == pytest.approx((0.5 + 0.4) / 2) and found.users == 5


def test_what_is_the_same_for_all_users_has_an_interval_of_no_width():
    (found,) = intervals([sample([0.5] * 30)])
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def test_one_user_has_an_interval_of_no_width_and_nobody_has_none():
    assert intervals([sample([0.25, np.nan])])[0] == statistics.Interval(0.25, 0.25, 0.25, 1)
    (nobody,) = intervals([sample([np.nan, np.nan])])
    assert nobody.users == 0 and np.isnan([nobody.mean, nobody.low, nobody.high]).all()


@pytest.mark.parametrize(("n_users", "resamples"), [(1, 3), (7, 50), (300, 1000), (70_000, 3)])
def test_counts_are_those_of_users_drawn_one_after_the_other(n_users, resamples):
    rng = np.random.default_rng(5)
    wanted = [np.bincount(rng.integers(0, n_users, n_users, np.int32), minlength=n_users) for _ in range(resamples)]
    for _ in range(2):  # the second time they are kept
        assert np.array_equal(np.concatenate(list(counts(n_users, resamples, seed=5))), wanted)


def test_few_counts_are_kept_and_many_are_not():
    resampling._kept.cache_clear()
    for n_users, kept in ((1000, 1), (70_000, 1)):
        next(counts(n_users, 1000))
        assert resampling._kept.cache_info().currsize == kept
    assert resampling._kept.cache_info().misses == 1


def test_every_user_is_drawn_as_often_as_any_other():
    drawn = sum(block.sum(axis=0) for block in counts(9, 20_000))
    assert stats.chisquare(drawn).pvalue > 1e-3


def test_resampled_ratios_are_those_of_a_loop():
    rng = np.random.default_rng(2)
    above, below = rng.random((6, 4)), rng.integers(0, 3, (6, 4)).astype(float)
    below[:, 1] = below[:, 2] = 1.0
    (block,) = counts(6, 50)
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = [[row @ above[:, k] / (row @ below[:, k]) for k in range(4)] for row in block]
    np.testing.assert_allclose(resampled(above, below, 50), wanted, rtol=1e-13)


# tests


@pytest.mark.parametrize("n", [5, 9, 40])
def test_a_p_value_is_that_of_scipy(n):
    rng = np.random.default_rng(n)
    one, other = rng.random(n), rng.random(n) - 0.15

    def difference(x, y, axis):
        return np.mean(x - y, axis=axis)

    theirs = stats.permutation_test(
        (one, other), difference, permutation_type="samples", vectorized=True, n_resamples=10_000,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    found = p_values(((one - other) / n)[:, None])[0]
    assert found == pytest.approx(theirs.pvalue, rel=1e-12 if n <= 12 else 0.15, abs=1e-3 if n > 12 else 0)


def test_a_test_raises_false_alarms_at_its_rate():
    rng = np.random.default_rng(0)
    nothing = rng.standard_t(4, size=(30, 1500))
    alarms = (p_values(nothing, permutations=2000) < 0.05).mean()
    assert abs(alarms - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 1500)


def test_with_several_solvers_that_are_alike_all_are_mostly_bold():
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(60):
        base = rng.random(40)
        found = statistics.verdicts({str(k): sample(base + 0.1 * rng.standard_normal(40)) for k in range(4)}, "higher")
        alarms += not all(verdict.bold for verdict in found.values())
    assert alarms / 60 < 0.2  # the best of four is chosen by the same numbers, so a little above 0.05


def test_identical_vectors_have_a_p_value_of_one():
    values = np.random.default_rng(0).random(50)
    found = statistics.contrast(sample(values), sample(values))
    assert (found.difference, found.low, found.high, found.p, found.effect) == (0, 0, 0, 1, 0)
    assert (found.wins, found.ties, found.losses) == (0, 50, 0)


def test_one_user_says_nothing():
    found = statistics.contrast(sample([0.9]), sample([0.1]))
    assert found.p == 1 and (found.wins, found.ties, found.losses) == (1, 0, 0)
    assert np.isnan(found.detectable)


def test_no_user_in_common_says_nothing():
    found = statistics.contrast(sample([0.9, np.nan]), sample([np.nan, 0.1]))
    assert found.p == 1 and np.isnan(found.difference)


def test_solvers_with_other_users_are_refused():
    with pytest.raises(UserError, match="values of 3 users and the other of 2"):
        statistics.contrast(sample([1, 2, 3]), sample([1, 2]))


def test_holm_is_holm():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, 0.8])).tolist() == [1, 1] and holm(np.zeros(0)).tolist() == []


def test_what_is_detectable_is_detected_in_four_cases_of_five():
    rng, n = np.random.default_rng(4), 60
    step = detectable(rng.standard_normal(20_000) / 20_000) * np.sqrt(20_000 / n)
    shifted = (rng.standard_normal((n, 1000)) + step) / n
    assert (p_values(shifted, permutations=1000) < 0.05).mean() == pytest.approx(0.8, abs=0.05)


# verdicts


def test_the_best_is_bold_and_so_is_whoever_cannot_be_told_from_it():
    rng = np.random.default_rng(0)
    users = rng.random(300)
    samples = {
        "good": sample(users),
        "as good": sample(users + 0.02 * rng.standard_normal(300) - 1e-3),
        "worse": sample(users - 0.05 + 0.02 * rng.standard_normal(300)),
    }
    found = statistics.verdicts(samples, "higher")
    assert {name: verdict.bold for name, verdict in found.items()} == {"good": True, "as good": True, "worse": False}
    against = found["worse"].against_best
    assert found["good"].against_best is None and against.high < 0 and against.effect_high < 0
    assert against.wins + against.ties + against.losses == 300 and against.losses > 250
    turned = statistics.verdicts(samples, "lower")
    assert [name for name, verdict in turned.items() if verdict.bold] == ["worse"]


def test_differences_are_those_of_the_means_where_all_users_are_counted():
    rng = np.random.default_rng(9)
    weights = rng.integers(1, 9, (2, 40)).astype(float)
    one, other = (several(rng.random((2, 40)), weights) for _ in range(2))
    found = statistics.contrast(one, other)
    assert found.difference == pytest.approx(one.mean() - other.mean(), rel=1e-12)
    assert found.low < found.difference < found.high
    assert paired(one, other).sum() == pytest.approx(found.difference, rel=1e-12)


def test_a_solver_without_a_value_has_no_verdict():
    found = statistics.verdicts({"fine": sample([1, 2]), "nan": sample([np.nan, np.nan])}, "higher")
    assert list(found) == ["fine"]
    assert statistics.verdicts({}, "higher") == {}


# over data sets


def test_ranks_and_tests_over_data_sets_are_those_of_scipy():
    rng = np.random.default_rng(0)
    table = rng.random((3, 9)) + np.array([[0.5], [0.0], [0.05]])
    found = ranking({"a": table[0], "b": table[1], "c": table[2]}, "higher")
    assert found.solvers[0] == "a" and sum(found.ranks) == pytest.approx(6)
    theirs = stats.friedmanchisquare(*table)
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    raw = [stats.wilcoxon(table[i] - table[j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(
        [found.pairs[pair] for pair in (("a", "b"), ("a", "c"), ("b", "c"))], holm(np.array(raw))
    )
    for run in found.alike:
        assert all(found.pairs[pair] >= 0.05 for pair in combinations(run, 2))


def test_solvers_that_are_all_alike_are_one_run():
    found = ranking({name: [0.1, 0.2, 0.3, 0.4, 0.5] for name in "xyz"}, "lower")
    assert found.alike == (("x", "y", "z"),) and found.p == 1 and set(found.ranks) == {2.0}


TOO_LITTLE = [{"a": [1, 2, 3, 4, 5]}, {"a": [1, 2], "b": [2, 1]}, {"a": [1] * 5, "b": [np.nan] * 5}]


@pytest.mark.parametrize("values", TOO_LITTLE)
def test_too_little_for_a_ranking_is_refused(values):
    with pytest.raises(UserError, match="at least two solvers and 5 data sets"):
        ranking(values, "higher")


def test_only_repetitions_that_both_have_are_compared():
    rng = np.random.default_rng(0)
    one, other = rng.random((2, 3, 30))
    found = statistics.contrast(several(one), Sample.of({2: other[2], 0: other[0]}))
    assert found.difference == pytest.approx((one[[0, 2]] - other[[0, 2]]).mean(), rel=1e-12)
    apart = statistics.contrast(Sample.of({0: one[0]}), Sample.of({1: one[0]}))
    assert np.isnan(apart.difference) and apart.p == 1


def by_formula(estimate, resamples, influences):
    """Efron's formulas, with SciPy's normal distribution and its rule for ties."""
    bias = stats.norm.ppf(stats.percentileofscore(resamples, estimate, kind="mean") / 100)
    acceleration = (influences**3).sum() / (6 * (influences**2).sum() ** 1.5)
    z = bias + stats.norm.ppf([0.025, 0.975])
    return np.quantile(resamples, stats.norm.cdf(bias + z / (1 - acceleration * z)))


def test_a_biased_estimate_and_one_with_ties_have_the_interval_of_the_formula():
    rng = np.random.default_rng(0)
    influences = rng.exponential(size=30) - 1
    for resamples in (rng.gamma(2.0, size=4001), rng.integers(0, 9, 4001).astype(float)):
        for estimate in (1.0, 3.0):
            expected = by_formula(estimate, resamples, influences)
            np.testing.assert_allclose(bca(estimate, resamples, influences), expected, rtol=1e-12)


def test_the_interval_of_an_effect_is_that_of_scipy():
    rng = np.random.default_rng(6)
    values = rng.gamma(1.0, size=40) - 0.6

    def effect(x, axis):
        return x.mean(axis) / x.std(axis)

    theirs = stats.bootstrap((values,), effect, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    found = statistics.contrast(sample(values), sample(np.zeros(40)))
    assert found.effect == pytest.approx(values.mean() / values.std(), rel=1e-12)
    ends = found.effect_low, found.effect_high
    assert ends == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))


def test_influences_on_an_effect_are_its_derivatives_by_each_users_weight():
    values = np.random.default_rng(1).gamma(1.0, size=9)

    def effect(weights):
        mean = weights @ values / weights.sum()
        return mean / np.sqrt(weights @ (values - mean) ** 2 / weights.sum())

    steps = [(effect(1 + 1e-6 * np.eye(9)[user]) - effect(np.ones(9))) / 1e-6 for user in range(9)]
    np.testing.assert_allclose(effect_influences(values), steps, rtol=1e-4)


@pytest.mark.parametrize(("users", "taken"), [(0, 10_000), (20_000, 10_000), (100_000, 2000), (10**6, 1000)])
def test_of_very_many_users_fewer_resamples_are_taken(users, taken):
    assert affordable(users) == taken


def test_no_p_value_is_zero():
    assert p_values(np.ones((50, 1)), permutations=99)[0] == 1 / 100


def test_what_is_detectable_follows_from_the_unbiased_variance():
    differences = np.array([0.1, 0.3, -0.2, 0.4, 0.0])
    expected = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * np.sqrt(5) * np.sqrt(differences.var() * 5 / 4)
    assert detectable(differences) == pytest.approx(expected, rel=1e-12)


def test_contrasts_of_many_pairs_are_those_of_each_alone():
    rng = np.random.default_rng(3)
    known = [Sample.of({number: rng.random(30) for number in range(2)}) for _ in range(4)]
    known.append(Sample.of({number: np.where(np.arange(30) < 5, np.nan, rng.random(30)) for number in range(2)}))
    pairs = list(combinations(known, 2))
    for pair, found in zip(pairs, contrasts(pairs), strict=True):
        alone = contrast(*pair)
        for name in ("difference", "low", "high", "p", "effect", "wins", "ties", "losses", "detectable"):
            assert getattr(found, name) == pytest.approx(getattr(alone, name), rel=1e-12)
        assert found.effect_low == pytest.approx(alone.effect_low, rel=1e-9)


def test_differences_that_are_equal_but_for_rounding_have_an_infinite_effect_and_no_nan():
    values = np.random.default_rng(0).random(30)
    found = contrast(sample(values + 0.1), sample(values))
    assert (found.effect, found.effect_low, found.effect_high) == (np.inf, np.inf, np.inf)
    assert found.low == pytest.approx(0.1) and found.p < 0.05


# ---- data drawn anew for each repetition ----


def test_repetitions_with_data_of_their_own_have_users_of_their_own():
    rng = np.random.default_rng(0)
    one, other = ({number: rng.normal(place, 1, 30) for number in (0, 1, 3)} for place in (0.0, 0.3))
    anew = [replace(Sample.of(values), anew=True) for values in (one, other)]
    joined = [Sample.of({0: np.concatenate(list(values.values()))}) for values in (one, other)]
    assert [round(sample.mean(), 12) for sample in anew] == [round(sample.mean(), 12) for sample in joined]
    assert contrast(*anew).p == contrast(*joined).p
    found, expected = intervals(anew), intervals(joined)
    assert [one.users for one in found] == [one.users for one in expected] == [90, 90]
    # users of repetition 2, which is missing, have empty columns: other resamples of the same distribution
    assert [one.low for one in found] == pytest.approx([one.low for one in expected], abs=0.02)


def test_a_repetition_that_only_one_solver_has_does_not_count_in_their_contrast():
    rng = np.random.default_rng(0)
    one = {number: rng.normal(0, 1, 30) for number in (0, 1, 2)}
    fewer = {number: one[number] + 1 for number in (0, 2)}
    found = contrast(*(replace(Sample.of(values), anew=True) for values in (fewer, one)))
    assert (found.wins, found.ties, found.losses) == (60, 0, 0) and found.difference == pytest.approx(1)


def test_a_sample_of_nothing_or_of_other_users_is_refused_and_nothing_known_has_no_interval():
    for values in ({}, {0: np.zeros(2), 1: np.zeros(3)}):
        with pytest.raises(UserError, match="a sample needs at least one repetition, and the same users in each"):
            Sample.of(values)
    assert np.isnan(bca(0.5, np.full(9, np.nan), np.ones(3))).all()
    assert np.isnan(bca(np.nan, np.ones(9), np.ones(3))).all()


def test_bold_is_decided_by_the_p_value_that_is_adjusted_for_the_number_of_solvers():
    rng = np.random.default_rng(3)
    best = rng.standard_normal(60)
    below = {f"below {place}": sample(best - 0.4 - 1.5 * rng.standard_normal(60)) for place in range(4)}
    found = statistics.verdicts({"best": sample(best + 0.1), **below}, "higher")
    others = [one for one in found.values() if one.against_best]
    assert any(one.against_best.p < 0.05 <= one.p and one.bold for one in others)
    assert all(one.bold == (one.p >= 0.05) for one in others)
