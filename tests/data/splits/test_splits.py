"""Properties of every split: the parts share users and items, the hash depends on content, errors name the split."""

import itertools
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from data.splits.small import EVERY_SPLIT, SEEDS, cut_or_skip, patient, rankings, ratings, rows_of, shuffled
from hypothesis import given, settings

import rankbench
from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS, Split, cut, split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings, offer
from rankbench.solvers.global_ranking import GlobalRanking

few = settings(patient, max_examples=12)  # for each of the splits
ELSEWHERE = {"given"}  # needs a file: see its own tests
DRAWN = tuple(name for name in EVERY_SPLIT if name != "given-folds" and not name.startswith("temporal"))
OF_EITHER_VIEW = (
    "n-per-user[n=5,least=2]",
    "items-per-task[n=4,test=3]",
    "per-user",
    "leave-one-out",
    "entries",
    "k-folds[k=3]",
    "cold-items",
    "new-users[test=0.4,known=2]",
)
OF_GROUPS = (  # with settings under which few groups are enough
    "n-per-user[n=1,least=1]",
    "items-per-task[n=2,test=1]",
    "per-user[test=0.5]",
    "leave-one-out",
    "entries",
    "entries[test=0.3,validation=0.3]",
    "k-folds[k=2]",
    "k-folds[k=2,per=user]",
    "new-users[test=0.4,known=1]",
)
ROWS_APART = tuple(name for name in EVERY_SPLIT if not name.startswith("binary"))  # whose parts differ in kind


@pytest.fixture(scope="module")
def data():
    """60 users with 20 ratings of 100 items each, in five folds, given at nine times."""
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    return replace(view, folds=rng.integers(1, 6, len(view)), times=rng.integers(0, 9, len(view)))


def test_every_split_of_the_house_is_tested_here():
    assert {name.partition("[")[0] for name in EVERY_SPLIT} == set(SPLITS.entries) - ELSEWHERE


# ---- the parts ----


@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_all_parts_are_over_the_same_users_and_items_and_know_nothing_of_folds(data, protocol):
    parts = split(data, protocol).parts
    assert len({(part.n_users, part.n_items) for part in parts.values()}) == 1
    assert all(part.folds is None for part in parts.values() if isinstance(part, Ratings))


@few
@given(ratings(folds=3), SEEDS)
@pytest.mark.parametrize("protocol", ROWS_APART)
def test_no_row_is_in_both_parts(protocol, view, seed):
    parts = cut_or_skip(view, protocol, seed, repetition=seed % 3)
    assert type(parts.train) is type(parts.test)
    assert not set(rows_of(parts.train)) & set(rows_of(parts.test))


@pytest.mark.trust
@pytest.mark.parametrize(
    "protocol",
    ["n-per-user[n=10,least=2]", "half-per-user[reviewers=60,least=2]", "entries", "per-user", "leave-one-out[n=5]"],
)
def test_every_row_is_as_likely_to_train_as_any_other(data, protocol):
    repetitions = 100
    trained = sum((rows_of(split(data, protocol, repetition=i).train) for i in range(repetitions)), Counter())
    counts = np.array([trained[row] for row in rows_of(data)])
    share = counts.sum() / (repetitions * len(data))
    deviations = (counts - repetitions * share) / np.sqrt(repetitions * share * (1 - share))
    assert np.abs(deviations).max() < 5


# ---- groups of comparisons ----


@pytest.mark.trust
@few
@given(rankings(), SEEDS)
@pytest.mark.parametrize("protocol", OF_GROUPS)
def test_the_comparisons_of_a_ranking_stay_together(protocol, view, seed):
    parts = cut_or_skip(view, protocol, seed, repetition=seed % 2).parts
    whole = Counter(zip(view.users.tolist(), view.groups.tolist(), strict=True))
    found = [Counter(zip(part.users.tolist(), part.groups.tolist(), strict=True)) for part in parts.values()]
    for own in found:
        assert all(count == whole[group] for group, count in own.items())
    assert sum(map(len, found)) == len(set().union(*found))


@few
@given(rankings(), SEEDS)
@pytest.mark.parametrize("protocol", OF_GROUPS)
def test_how_groups_are_numbered_never_matters(protocol, view, seed):
    expected = cut_or_skip(view, protocol, seed)
    numbers = np.random.default_rng(seed).permutation(view.groups.max() + 1) * 7 - 3
    order = np.random.default_rng(seed).permutation(len(view))
    mixed = Comparisons.from_triples(
        view.users[order], view.better[order], view.worse[order], view.n_users, 8, groups=numbers[view.groups][order]
    )
    assert split(mixed, protocol, seed=seed).hash == expected.hash


def test_groups_of_one_comparison_are_dealt_as_rows_are():
    rated = LowRank(users=30, items=20, per_user=8).view(np.random.default_rng(0))
    view = rated.comparisons(9, np.random.default_rng(1))
    counted = replace(view, groups=np.arange(len(view)))
    for protocol, sizes in (("per-user", (210, 60)), ("entries", (216, 54)), ("leave-one-out[n=2]", (210, 60))):
        for one in (view, counted):
            parts = split(one, protocol)
            assert (len(parts.train), len(parts.test)) == sizes


def test_too_few_groups_are_an_error_that_names_them():
    view = Comparisons([0, 3], [0, 0, 1], [1, 2, 2], 3, groups=np.zeros(3, int))
    with pytest.raises(UserError, match=r"no user has 2 groups of comparisons \(the most is 1\)"):
        split(view, "leave-one-out")
    with pytest.raises(UserError, match="deals 1 groups of comparisons to 2 folds"):
        split(view, "k-folds[k=2]")


def test_no_solver_sees_groups_and_no_hash_depends_on_them():
    view = Comparisons([0, 2], [0, 1], [1, 2], 3, groups=np.array([4, 5]))
    assert offer(GlobalRanking(), view).groups is None
    assert Split(view, view).hash == Split(replace(view, groups=None), view).hash


# ---- the hash ----


@pytest.mark.parametrize("protocol", DRAWN)
def test_the_same_seed_gives_the_same_hash_and_another_seed_or_repetition_another(data, protocol):
    def hashes():
        return [split(data, protocol, seed=s, repetition=r).hash for s, r in itertools.product(range(4), range(3))]

    assert hashes() == hashes()
    assert len(set(hashes())) == 12


@pytest.mark.trust
@few
@given(ratings(folds=3), SEEDS)
@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_the_order_of_rows_in_the_file_never_matters(protocol, view, seed):
    expected = cut_or_skip(view, protocol, seed, repetition=seed % 3)
    assert split(shuffled(view, seed), protocol, seed=seed, repetition=seed % 3).hash == expected.hash


@pytest.mark.parametrize("protocol", OF_EITHER_VIEW)
def test_the_order_of_comparisons_in_the_file_never_matters(data, protocol):
    pairs = data.comparisons(12, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(pairs))
    mixed = Comparisons.from_triples(pairs.users[order], pairs.better[order], pairs.worse[order], 60, 100)
    assert split(mixed, protocol).hash == split(pairs, protocol).hash


@pytest.mark.trust
@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_threads_that_split_side_by_side_find_what_one_finds(data, protocol):
    with ThreadPoolExecutor(3) as pool:
        hashes = list(pool.map(lambda _: split(data, protocol).hash, range(6)))
    assert set(hashes) == {split(data, protocol).hash}


def variants():
    """A small pair of parts, and what differs from it in one thing each."""
    part = Ratings([0, 2], [0, 1], [1.0, 2.0], 3)
    yield "itself", part, part
    yield "the parts exchanged", part.take(np.array([0])), part
    yield "another value", Ratings([0, 2], [0, 1], [1.0, 2.5], 3), part
    yield "another item", Ratings([0, 2], [0, 2], [1.0, 2.0], 3), part
    yield "another user", Ratings([0, 1, 2], [0, 1], [1.0, 2.0], 3), part
    yield "one more item", Ratings([0, 2], [0, 1], [1.0, 2.0], 4), part
    yield "dense features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, np.eye(3)), part
    yield "other features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, 2 * np.eye(3)), part
    yield "sparse features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, scipy.sparse.eye_array(3)), part
    yield "ids", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, item_ids=[4, 5, 6]), part
    yield "comparisons", part.comparisons(), part


def test_whatever_differs_in_content_differs_in_hash():
    part = Ratings([0, 2], [0, 1], [1.0, 2.0], 3)
    hashes = {name: Split(train, test).hash for name, train, test in variants()}
    hashes["the parts exchanged back"] = Split(*reversed(list(variants())[1][1:])).hash
    hashes["something seen"] = Split(part, part, part).hash
    hashes["something else seen"] = Split(part, part, part.take(np.array([1]))).hash
    assert len(set(hashes.values())) == len(hashes)


@pytest.mark.parametrize("protocol", [name for name in EVERY_SPLIT if not name.startswith("leave-reviewer-out")])
def test_times_are_kept_and_change_no_hash(data, protocol):
    parts = split(data, protocol, seed=2)
    rated = {(user, item): time for user, item, time in zip(data.users, data.items, data.times, strict=True)}
    for part in parts.parts.values():
        if isinstance(part, Ratings):
            found = zip(part.users, part.items, strict=True)
            assert part.times.tolist() == [rated[pair] for pair in found]
    bare = {name: replace(part, times=None) for name, part in parts.parts.items() if isinstance(part, Ratings)}
    assert replace(parts, **bare).hash == parts.hash


@pytest.mark.parametrize("protocol", DRAWN)
def test_the_folds_of_the_data_leave_no_trace_where_a_split_does_not_use_them(data, protocol):
    assert split(replace(data, folds=None), protocol).hash == split(data, protocol).hash


def test_settings_by_text_by_keyword_or_by_default_make_one_split(data):
    by_text, by_keyword = split(data, "n-per-user[n=10,least=2]"), split(data, "n-per-user", n=10, least=2)
    mixed = split(data, " n-per-user [least=2] ", n="10")
    assert by_text.hash == by_keyword.hash == mixed.hash
    assert split(data, "entries").hash == split(data, "entries[test=0.2]").hash


# ---- errors ----


@pytest.mark.parametrize(
    ("protocol", "part"),
    [
        ("entries[test=0.0001]", "test"),
        ("entries[test=0.9999]", "train"),
        ("entries[validation=0.7999]", "train"),
        ("entries[train=0.0001]", "train"),
        ("cold-items[test=0.001]", "test"),
        ("cold-items[test=0.999]", "train"),
        ("binary[test=0.0001]", "test"),
        ("binary[test=0.9999]", "train"),
        ("comparisons[n=2,test=0.1]", "test"),
    ],
)
def test_data_too_small_for_a_split_is_an_error_that_names_it(data, protocol, part):
    name = protocol.partition("[")[0]
    with pytest.raises(UserError, match=rf"the split {name}\[.*\] leaves nothing to {part} on: the data is too small"):
        split(data, protocol)


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("n-per-user[n=500]", "keeps none of the 60 users: no user has 510 ratings (the most is 20); lower n"),
        ("items-per-task", "keeps none of the 60 users: no user has 61 ratings (the most is 20); lower n or test"),
        ("leave-one-out[n=20]", "keeps none of the 60 users: no user has 21 ratings (the most is 20); lower n or le"),
        (
            "half-per-user[least=21]",
            "keeps none of the 60 users: no user has 21 to 300 ratings (the most is 20); lower least or raise most",
        ),
        ("half-per-user[least=10,most=19]", "no user has 10 to 19 ratings (the most is 20); lower least or raise most"),
        (
            "half-per-user[least=10,references=2,low=1,high=5]",
            "finds no reference reviewer with 1 to 5 ratings: widen low..high",
        ),
        ("leave-reviewer-out", "keeps none of the 60 users: no user has 200 ratings (the most is 20); lower least"),
        ("leave-reviewer-out[least=3,raters=61]", "keeps none of the 100 items: none has 61 ratings by the 60 reviewe"),
        (
            "given-folds[least=20]",
            "keeps none of the 60 users: no user has 20 ratings in every fold's training part (the most is N); lower l",
        ),
        ("k-folds[k=1201]", "deals 1200 ratings to 1201 folds: lower k"),
        ("leave-last-out[n=20]", "keeps none of the 60 users: no user has 21 ratings (the most is 20); lower n or le"),
        ("temporal[test=0.99]", "finds no time before the latest 1188 ratings, which are as early as all: lower test"),
        ("given-folds[fold=6]", "asks for fold 6, but 5 folds were published: lower fold"),
        ("per-user[test=0.01]", "holds out none of any user's ratings (the most that one has is 20): raise test"),
        ("comparisons", "keeps none of the 60 users: no user has 500 strict pairs (the most is N); lower n"),
        ("comparisons[n=21,of=items]", "keeps none of the 60 users: no user has 21 ratings (the most is 20); lower n"),
    ],
)
def test_a_condition_that_nobody_meets_is_named_with_how_far_off_it_is(data, protocol, message):
    with pytest.raises(UserError) as caught:
        split(data, protocol)
    text = re.sub(r"most is 1\d+", "most is N", str(caught.value))
    assert message in text and "\n" not in text
    assert text.startswith(f"the split {protocol.partition('[')[0]}[")


def test_the_data_is_named_where_its_name_is_known(data):
    with pytest.raises(UserError, match=r"^the split n-per-user\[n=500,least=10\] of ml-100k keeps none of the 60"):
        cut(data, SPLITS.resolve("n-per-user[n=500]"), 0, 0, "ml-100k")


@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_data_without_a_single_rating_is_an_error(protocol):
    for view in (
        Ratings([0], [], [], 5),
        Ratings([0], [], [], 5, times=[]),
        Ratings([0, 0, 0], [], [], 5),
        Ratings([0], [], [], 0),
    ):
        with pytest.raises(
            UserError, match=r"^the split [^ ]* (keeps none|leaves nothing|holds out none|needs |deals 0)"
        ):
            split(view, protocol)


@pytest.mark.parametrize(
    "name", sorted(set(SPLITS.entries) - ELSEWHERE - {name.partition("[")[0] for name in OF_EITHER_VIEW})
)
def test_comparisons_are_refused_where_ratings_are_needed(data, name):
    message = rf"the split {name}\[.*\] needs ratings, the data holds comparisons \(use entries or per-user\)"
    with pytest.raises(UserError, match=message):
        split(data.comparisons(3, np.random.default_rng(0)), name)


@pytest.mark.parametrize("protocol", OF_EITHER_VIEW)
def test_comparisons_are_split_like_ratings(data, protocol):
    pairs = data.comparisons(12, np.random.default_rng(0))
    parts = split(pairs, protocol)
    assert type(parts.train) is type(parts.test) is Comparisons
    assert not (rows_of(parts.train) + rows_of(parts.test)) - rows_of(pairs)


@pytest.mark.parametrize(
    ("protocol", "settings", "message"),
    [
        ("n-per-users", {}, "unknown split 'n-per-users'; did you mean 'n-per-user'"),
        ("n-per-user", {"m": 3}, "unknown setting of n-per-user: 'm'"),
        ("n-per-user", {"n": 0}, "n-per-user: n=0 is out of range: must be at least 1"),
        ("entries", {"test": 1}, "entries: test=1 is out of range: must be above 0 and below 1"),
        ("entries[test=0.5,validation=0.3,train=0.3]", {}, "entries: test=0.5, validation=0.3, train=0.3 add up"),
        ("cold-items[test=nan]", {}, "test=nan is out of range"),
        ("half-per-user[least=1]", {}, "least=1 is out of range: must be at least 2"),
        ("comparisons[of=pair]", {}, "comparisons: unknown value of of: 'pair'; did you mean 'pairs'"),
        ("given-folds[fold=0]", {}, "given-folds: fold=0 is out of range: must be at least 1"),
    ],
)
def test_bad_settings_are_refused(data, protocol, settings, message):
    with pytest.raises(UserError, match=message):
        split(data, protocol, **settings)


def test_a_setting_in_the_name_and_beside_it_is_refused(data):
    message = "n is given twice, in 'n-per-user[n=5]' and as n=6; give it once"
    for asked in (split, rankbench.split):
        with pytest.raises(UserError, match=re.escape(message)):
            asked(data, "n-per-user[n=5]", n=6)
    both = split(data, "n-per-user[n=5]", least=6)
    assert both.hash == split(data, "n-per-user[n=5,least=6]").hash


def test_fractions_that_make_up_the_whole_are_not_refused_for_rounding(data):
    assert len(split(data, "entries[test=0.1,validation=0.1,train=0.8]").train) == 960


@pytest.mark.parametrize("name", sorted(SPLITS.entries))
def test_every_split_can_be_made_by_its_name_alone_and_has_a_version_and_a_line_about_it(name):
    record = SPLITS.make(name)
    assert record.version >= 1
    assert (type(record).__doc__ or "").partition("\n")[0].endswith(".")


# ---- a user's own ----


OWN = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.splits import CannotCut, Split
from rankbench.core.errors import UserError


@dataclass(frozen=True)
class Own:
    mode: str = "ok"
    version: ClassVar[int] = 1

    def cut(self, view, rng, repetition):
        if self.mode == "refuse":
            raise CannotCut("wants more than this")
        if self.mode == "mistake":
            raise UserError("mode is not for you")
        if self.mode == "break":
            raise ZeroDivisionError("by nothing")
        if self.mode == "other":
            return view, view
        rows = np.arange(len(view))
        return Split(view.take(rows[repetition::2]), view.take(rows[1 - repetition :: 2]))
"""


@pytest.fixture
def own(here):
    """A user's split, in which every second row tests, from the first or the second on."""
    (here / "own.py").write_text(OWN)


@pytest.mark.usefixtures("own")
def test_a_users_own_split_is_told_the_repetition_and_loses_the_folds(data):
    first, second = (split(data, "own.py:Own", repetition=repetition) for repetition in (0, 1))
    assert rows_of(first.train) == rows_of(second.test) == rows_of(data.take(np.arange(0, len(data), 2)))
    assert first.train.folds is first.test.folds is None


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("refuse", r"^the split own\.py:Own\[mode=refuse\] wants more than this$"),
        ("mistake", r"^the split own\.py:Own\[mode=mistake\]: mode is not for you$"),
        ("break", r"^the split own\.py:Own\[mode=break\] cannot be made: ZeroDivisionError: by nothing$"),
        ("other", r"^the split own\.py:Own\[mode=other\] is a tuple: `cut` must return a Split$"),
    ],
)
def test_what_a_users_own_split_does_wrong_is_said_after_its_name(data, mode, message):
    with pytest.raises(UserError, match=message):
        split(data, f"own.py:Own[mode={mode}]")
