"""The verdicts on samples: from what is stored of each solver to words, with gaps in what is known."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr

from rankbench.core.errors import UserError
from rankbench.statistics import Sample, between, power, shared_by, verdicts
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE, ranked, words
from rankbench.statistics.estimates import mean_of_users
from rankbench.statistics.thresholds import shaped, thresholds
from rankbench.statistics.variation import Together


def several(*rows):
    """A sample of a repetition for each row."""
    return Sample.of(dict(enumerate(np.asarray(rows, float))))


def drawn(seed, mean=0.5, repetitions=3, users=40, spread=0.02):
    """A sample of noisy values around a mean."""
    return several(*np.random.default_rng(seed).normal(mean, spread, (repetitions, users)))


def test_the_best_is_bold_with_whatever_is_not_worse_than_it():
    found = verdicts({"a": drawn(0, 0.7), "b": drawn(1, 0.705), "c": drawn(2, 0.5)}, "higher")
    assert [name for name, one in found.items() if one.best] == ["b"]
    assert [name for name, one in found.items() if one.bold] == ["a", "b"]
    assert found["c"].decision.word == WORSE and found["c"].rival == "b" and found["b"].rival == "a"


def test_of_one_repetition_nothing_is_bold():
    found = verdicts({"a": drawn(0, 0.7, 1), "b": drawn(2, 0.5, 1)}, "lower")
    assert found["b"].best and found["b"].decision.word == BETTER and not any(one.bold for one in found.values())


def test_a_solver_without_a_common_repetition_is_open_and_says_what_it_lacks():
    short = drawn(0, 0.9).only((0, 2))
    found = verdicts({"a": drawn(1, 0.7), "b": drawn(2, 0.5), "short": short}, "higher")
    assert found["short"].decision.word == OPEN and found["short"].decision.reason == "it has no value in repetition 1"
    assert found["a"].best and found["a"].decision.word == BETTER


def test_more_repetitions_than_most_have_are_left_out_of_the_verdict_and_stay_in_the_mean():
    more = drawn(0, 0.7, 5)
    found = verdicts({"more": more, "a": drawn(1, 0.7), "b": drawn(2, 0.5)}, "higher")
    assert found["more"].decision.difference.repetitions == 3 and found["more"].mean.repetitions == 5
    assert found["more"].mean.mean == pytest.approx(more.mean())


def test_a_solver_without_a_value_has_no_verdict():
    found = verdicts({"a": drawn(0), "none": several(np.full(40, np.nan))}, "higher")
    assert list(found) == ["a"] and found["a"].alone and not found["a"].bold
    assert verdicts({}, "higher") == {}


def test_a_margin_makes_small_differences_equal():
    found = verdicts({"a": drawn(0, 0.7), "b": drawn(1, 0.702)}, "higher", margin=0.05)
    assert {one.decision.word for one in found.values()} == {EQUAL}
    assert {one.decision.margin for one in found.values()} == {0.05}


def test_the_margin_is_a_hundredth_of_the_best_mean():
    found = verdicts({"a": drawn(0, 0.7), "b": drawn(1, 0.6)}, "lower")
    assert found["b"].decision.margin == pytest.approx(found["b"].mean.mean / 100)


def test_the_mean_is_that_of_each_repetitions_weighted_mean():
    rng = np.random.default_rng(5)
    values, weights = rng.random((3, 7)), rng.integers(1, 9, (3, 7)).astype(float)
    values[1, 2] = np.nan
    sample = Sample.of(dict(enumerate(values)), dict(enumerate(weights)))
    expected = np.mean([np.average(row[~np.isnan(row)], weights=of[~np.isnan(row)])
                        for row, of in zip(values, weights, strict=True)])  # fmt: skip
    assert sample.mean() == pytest.approx(expected, rel=1e-14)
    assert mean_of_users(values, weights).mean == pytest.approx(expected, rel=1e-12)


def test_users_of_their_own_in_each_repetition_are_no_users_of_several():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        values = rng.normal(0, 1, (5, 30))  # data drawn anew: column and row are no more than places
        found = mean_of_users(values)
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / 400


def test_pairs_are_judged_together():
    known = {place: drawn(place, 0.5 + 0.05 * (place == 3)) for place in range(4)}
    found = between(known, "higher")
    assert set(found) == {(two, one) for one, two in combinations(range(4), 2)}
    assert [found[3, one].word for one in range(3)] == [BETTER] * 3
    assert not {WORSE, BETTER} & {found[two, one].word for one, two in combinations(range(3), 2)}


@pytest.mark.slow
def test_of_equal_solvers_hardly_any_pair_is_called_different():
    wrong = 0
    for seed in range(60):
        known = {place: drawn((seed, place)) for place in range(6)}
        wrong += any(one.word in (BETTER, WORSE) for one in between(known, "higher").values())
    assert wrong / 60 <= 0.13  # three standard errors above 5 %


def test_a_pair_is_called_different_where_its_p_value_says_so():
    known = {place: drawn((3, place), 0.5 + 0.02 * place) for place in range(6)}
    found = between(known, "higher", margin=0.0).values()
    assert {one.word for one in found} >= {BETTER, OPEN}
    assert [one.p < 0.05 for one in found] == [one.word in (BETTER, WORSE) for one in found]


def test_several_families_share_their_errors():
    known = {0: drawn(0, 0.5, 1, 60, 1.0), 1: drawn(1, 0.9, 1, 60, 1.0)}
    one, many = (between(known, "higher", families=count)[1, 0] for count in (1, 20))
    assert many.difference.high - many.difference.low > one.difference.high - one.difference.low


def test_pairs_with_other_repetitions_are_compared_on_those_that_both_have():
    rows = np.random.default_rng(0).random((3, 3, 30))
    known = {"a": several(*rows[0]), "b": Sample.of({2: rows[1][2], 0: rows[1][0]}), "c": several(*rows[2])}
    found = between(known, "higher")
    assert found["b", "a"].difference.mean == pytest.approx((rows[1] - rows[0])[[0, 2]].mean(), rel=1e-12)
    assert found["c", "a"].difference.repetitions == 3
    apart = between({0: several(rows[0][0]), 1: Sample.of({1: rows[0][0]})}, "higher")[1, 0]
    assert apart.word == OPEN and apart.reason == "no user has a value"


def test_shared_repetitions_are_those_of_all():
    samples = [Sample.of(dict.fromkeys(numbers, np.zeros(2))) for numbers in ((2, 0, 1), (0, 1), (1, 2))]
    assert shared_by(samples) == (1,) and shared_by(samples[:2]) == (0, 1) and shared_by(samples[1:2]) == (0, 1)


def test_wrong_samples_are_refused():
    for values in ({}, {0: np.zeros(2), 1: np.zeros(3)}):
        with pytest.raises(UserError, match="a sample needs at least one repetition, and the same users in each"):
            Sample.of(values)
    with pytest.raises(UserError, match="values of 30 and 40 users"):
        between({0: drawn(0), 1: drawn(1, users=30)}, "higher")


@pytest.mark.trust
def test_what_more_repetitions_would_show_is_what_they_show():
    """A difference stated for ten repetitions, judging by three, is found in about four of five draws of ten."""
    stated = np.median([power({0: moved(seed, 0, 3), 1: moved(seed, 1, 3)}, "higher", (10,))[0] for seed in range(60)])
    found = 0
    for seed in range(300):
        pair = {0: moved(seed, 0, 10), 1: several(*(moved(seed, 1, 10).values + stated))}
        found += verdicts(pair, "higher", margin=0.0)[1].decision.word == BETTER
    assert 0.7 < found / 300 < 0.9


def moved(seed, place, repetitions, users=60):
    """Values of users whose mean moves from repetition to repetition."""
    rng = np.random.default_rng((7, seed, place))
    return several(*rng.normal(0, 0.1, (repetitions, users)) + rng.normal(0, 0.03, (repetitions, 1)))


def test_one_repetition_foresees_nothing():
    assert power({0: drawn(0, repetitions=1), 1: drawn(1, repetitions=1)}, "higher", (3, 5)) == [np.inf, np.inf]
    assert power({0: drawn(0)}, "higher", (3,)) == [np.inf]


def test_one_repetition_says_nothing_of_what_more_would_settle():
    pair = {0: drawn(0, 0.5, 1, spread=0.2), 1: drawn(1, 0.51, 1, spread=0.2)}
    found = verdicts(pair, "higher")[0].decision
    assert found.word == OPEN and found.repetitions_needed is None and "repetitions" not in found.settled_by


def test_what_settles_the_best_settles_all_that_are_open():
    found = verdicts({place: drawn(place, 0.5, 5, spread=0.2) for place in range(4)}, "higher", margin=1e-6)
    (best,) = [one.decision for one in found.values() if one.best]
    needed = [one.decision.repetitions_needed for one in found.values() if not one.best]
    assert best.repetitions_needed == (None if None in needed else max(needed))


def test_tiers_and_chances_to_come_first():
    found = verdicts({"a": drawn(0, 0.7), "b": drawn(1, 0.702), "c": drawn(2, 0.5)}, "higher")
    assert [found[name].tier for name in "abc"] == [1, 1, 2]
    assert sum(one.first[0] for one in found.values()) == pytest.approx(1) and found["c"].first[0] < 0.01


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [3, 10])
def test_the_interval_of_a_chance_covers_the_true_one(repetitions):
    """The chance that the first is better in a new draw of 60 users and one repetition, of moved means."""
    users, held = 60, 0
    spread = np.sqrt(2 * (0.1**2 / users + 0.03**2))
    true = ndtr(0.05 / spread)
    for seed in range(200):
        pair = {0: several(*(moved(seed, 0, repetitions).values + 0.05)), 1: moved(seed, 1, repetitions)}
        found = verdicts(pair, "higher")[0].decision
        held += found.chance_low <= true <= found.chance_high
    assert held / 200 >= 0.92


RNG = np.random.default_rng(7)
LIMITS = (0.0, 1.0)


def noise(*shape):
    """Values from 0 to 1."""
    return RNG.random(shape)


def without(values, *users):
    """The values with NaN for these users."""
    found = values.copy()
    found[:, list(users)] = np.nan
    return found


def in_repetition(values, repetition):
    """The values with NaN for all users of this repetition."""
    found = values.copy()
    found[repetition] = np.nan
    return found


ODD = {
    "one user": (noise(3, 1), noise(3, 1)),
    "one user of one repetition": (noise(1, 1), noise(1, 1)),
    "two users of one repetition": (noise(1, 2), noise(1, 2)),
    "one repetition": (noise(1, 50), noise(1, 50)),
    "the same constant": (np.full((3, 20), 0.5), np.full((3, 20), 0.5)),
    "two constants": (np.full((3, 20), 0.5), np.full((3, 20), 0.6)),
    "two constants of one repetition": (np.full((1, 20), 0.5), np.full((1, 20), 0.6)),
    "both limits": (np.zeros((3, 20)), np.ones((3, 20))),
    "a constant for each repetition": (np.tile([[0.5], [0.6]], 20), np.tile([[0.4], [0.7]], 20)),
    "the same in each repetition": (np.tile(noise(1, 20), (3, 1)), np.tile(noise(1, 20), (3, 1))),
    "NaN for some users": (without(noise(3, 20), 0, 1), without(noise(3, 20), 18, 19)),
    "NaN for all users but one": (noise(3, 20), without(noise(3, 20), *range(19))),
    "no user in common": (without(noise(3, 4), 0, 1), without(noise(3, 4), 2, 3)),
    "NaN for a repetition": (noise(3, 20), in_repetition(noise(3, 20), 1)),
    "an infinite value": (noise(3, 20), np.where(np.arange(20) == 3, np.inf, noise(3, 20))),
    "no users": (np.zeros((3, 0)), np.zeros((3, 0))),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ODD)
def test_of_odd_values_there_is_a_verdict_in_words_and_no_certainty_without_its_reason(kind):
    samples = {name: several(*values) for name, values in zip("ab", ODD[kind], strict=True)}
    found = verdicts(samples, "higher", limits=LIMITS)
    assert len(found) == (0 if kind == "no users" else 2)
    pairs = between(samples, "higher", limits=LIMITS)
    for estimate in [one.mean for one in found.values()]:
        check_interval(estimate)
    for decision in [*(one.decision for one in found.values()), *pairs.values()]:
        assert decision.word in (BETTER, WORSE, EQUAL, OPEN)
        check_interval(decision.difference)
        assert decision.word != OPEN or decision.settled_by or decision.reason
    for one in found.values():
        assert one.decision.difference.users > 1 or one.first[1:] == (0.0, 1.0)
    assert len(power(samples, "higher", (3, 5), LIMITS)) == 2


def check_interval(estimate):
    """An interval holds its mean; one without width, or without bounds, says why."""
    assert not np.isnan([estimate.low, estimate.high]).any()
    assert np.isnan(estimate.mean) or estimate.low <= estimate.mean <= estimate.high
    assert (0 < estimate.high - estimate.low < np.inf) or estimate.reason


@pytest.mark.filterwarnings("error")
def test_negative_estimates_of_variances_make_no_threshold_lower():
    nothing, cells = np.zeros((3, 3)), np.full((3, 3), 1e-3)
    three = thresholds(Together(np.zeros(3), -1e-6 * np.eye(3), nothing, cells, 50, 10))
    assert three == thresholds(Together(np.zeros(3), np.eye(3), nothing, cells, 50, 10))
    assert three[0] > thresholds(Together(np.zeros(2), np.eye(2), nothing[:2, :2], cells[:2, :2], 50, 10))[0]
    one_negative = np.diag([1.0, 1.0, -1e-6])
    assert thresholds(Together(np.zeros(3), one_negative, nothing, cells, 50, 10))[0] == pytest.approx(
        thresholds(Together(np.zeros(3), np.diag([1.0, 1.0, 0.0]), nothing, cells, 50, 10))[0], rel=1e-9
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("repetitions", [1, 2, 5])
@pytest.mark.parametrize("solvers", [1, 2, 6])
def test_words_alone_are_those_of_the_whole_verdict(solvers, repetitions):
    seen = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=40) + rng.normal(
            rng.choice([0, 0.2, 1, 30], (solvers, 1, 1)), 1, (solvers, repetitions, 40)
        )
        values[0, :, 0] = np.nan
        margin = float(rng.choice([0.0, 1.0]))
        found = words(values, "higher", margin)
        whole = ranked(values, "higher", margin)
        assert found == [one.word for one in whole.decisions]
        seen |= set(found)
        others = [one for place, one in enumerate(whole.decisions) if place != whole.best]
        for one in others:
            apart = one.difference.low > 0 or one.difference.high < 0
            assert one.word == EQUAL or (one.word in (BETTER, WORSE)) == apart
        words_of_others = {one.word for one in others} or {OPEN}
        of_best = BETTER if words_of_others == {WORSE} else OPEN if OPEN in words_of_others else EQUAL
        assert found[whole.best] == of_best
    assert seen == {OPEN} if solvers == 1 else {BETTER, WORSE} <= seen or EQUAL in seen
    assert words(np.full((2, 3, 4), np.nan), "lower") == [OPEN, OPEN]


def test_a_repetition_without_any_value_is_lacking():
    found = verdicts({"a": drawn(0), "b": several(*in_repetition(drawn(1).values, 1)), "c": drawn(2)}, "higher")
    assert found["b"].decision.word == OPEN and found["b"].decision.reason == "it has no value in repetition 1"
    assert found["b"].mean.repetitions == 2 and found["b"].mean.reason == "1 repetition without values"


def test_an_infinite_value_leaves_the_mean_without_bounds():
    mean = mean_of_users(np.array([[1.0, np.inf, 2.0]]))
    assert (mean.mean, mean.low, mean.high, mean.reason) == (np.inf, -np.inf, np.inf, "a value is infinite")


def test_draws_hardly_change_where_covariances_hardly_change():
    """As by a rounding error of another library, where several solvers are alike and eigenvectors may turn round."""
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((200, 6))
    tall = rng.standard_normal((6, 2))
    alike = tall[[0, 0, 0, 1, 1, 2]]
    for covariances in (np.eye(6), alike @ alike.T, np.ones((6, 6))):
        noise = 1e-13 * rng.standard_normal((6, 6))
        one, other = shaped(normals, covariances), shaped(normals, covariances + noise + noise.T)
        np.testing.assert_allclose(one, other, atol=1e-5)
        many = shaped(rng.standard_normal((200_000, 6)), covariances)
        np.testing.assert_allclose(np.cov(many.T), covariances, atol=0.05)
