"""The test kit for metrics: one that keeps the rules passes, and each broken one fails the check that is for it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from rankbench.checks.kit import OF_METRICS, checked, looked
from rankbench.metrics import OWN_METRICS
from rankbench.names import check

KEPT: list[Any] = []  # what a broken metric keeps between two users
BROKEN: dict[str, tuple[type, str, str, str]] = {}


@dataclass(frozen=True)
class Good:
    """The share of the pairs of items, whose better one is rated at least so high, in the right order."""

    least: float = 0.0
    definition: ClassVar = "share of pairs in the right order, a tie counts 1/2; left out: users without a pair"
    better: ClassVar = "higher"
    limits: ClassVar = (0, 1)
    version: ClassVar = 1

    def __post_init__(self):
        check(self)

    def of_user(self, scores, ratings):
        return self.share(np.where(np.isnan(scores), -np.inf, scores), ratings)

    def share(self, scores, ratings):
        better = (ratings[:, None] > ratings) & (ratings[:, None] >= self.least)
        if not better.any():
            return np.nan
        ahead = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
        return ahead[better].mean()


@dataclass(frozen=True)
class MeanGap(Good):
    """A mean whose value is not about an order, and that leaves users with missing scores out."""

    definition: ClassVar = "the mean rating; left out: users with items that have no score"
    limits: ClassVar = (1, 5)

    def of_user(self, scores, ratings):
        return np.nan if np.isnan(scores).any() else ratings.mean()


class Anything(Good):
    """A value for every user."""

    def of_user(self, scores, ratings):
        return 0.5


def fails(name: str, seen: str, remedy: str) -> Callable[[type], type]:
    """Note that a metric fails this check."""

    def note(metric: type) -> type:
        BROKEN[metric.__name__] = (metric, name, seen, remedy)
        return metric

    return note


@fails("declarations", "definition is '  '", "say in words")
class SaysNothing(Good):
    definition: ClassVar = "  "


@fails("declarations", "better is 'up'", "declare 'higher' or 'lower'")
class Upwards(Good):
    better: ClassVar = "up"


@fails("declarations", "limits is (1, 0)", "the lowest and the highest value: (0, 1)")
class LimitsTurned(Good):
    limits: ClassVar = (1, 0)


@fails("declarations", "limits is 1", "the lowest and the highest value: (0, 1)")
class OneLimit(Good):
    limits: ClassVar = 1


@fails("declarations", "version is '1'", "raise it with changes")
class VersionAsText(Good):
    version: ClassVar = "1"


@fails("declarations", "the class can be changed", "@dataclass(frozen=True)")
@dataclass
class Thawed:
    definition: ClassVar = "a value"
    better: ClassVar = "higher"
    limits: ClassVar = (0, 1)
    version: ClassVar = 1

    def of_user(self, scores, ratings):
        return 0.5


@fails("values", "of a user with 1 items, `of_user` returns an array", "return one number, or NaN")
class ReturnsAnArray(Good):
    def of_user(self, scores, ratings):
        return ratings


@fails("values", "`of_user` returns a NoneType", "return one number, or NaN")
class ReturnsNothing(Good):
    def of_user(self, scores, ratings):
        return None if len(scores) < 3 else 0.5


@fails("values", "every user is left out", "only for users without a value")
class LeavesAllOut(Good):
    def of_user(self, scores, ratings):
        return np.nan


@fails("values", "IndexError: index 1 is out of bounds", "mend the line")
class NeedsTwo(Good):
    def of_user(self, scores, ratings):
        return ratings[1] / 5


@fails("limits", "a value is 1.5, the limits are 0 and 1", "declare wider limits")
class PassesTheLimit(Good):
    def share(self, scores, ratings):
        found = super().share(scores, ratings)
        return 1.5 if found == 1 else found


@fails("limits", "a value is inf", "a value is finite or NaN")
class RunsAway(Good):
    limits: ClassVar = (0, np.inf)

    def share(self, scores, ratings):
        found = super().share(scores, ratings)
        return np.inf if found == 0 else found


@fails("definition", "it does not say who is left out, and", "add for example: left out: users")
class DoesNotSayWho(Good):
    definition: ClassVar = "share of pairs in the right order"


@fails("direction", "scores equal to the ratings get 1, with the sign turned around 0", "declare better = 'higher'")
class Turned(Good):
    better: ClassVar = "lower"


@fails("order of items", "the value changes with the order of the items", "keep scores[i] and ratings[i] together")
class SortsOneOnly(Good):
    def share(self, scores, ratings):
        return super().share(np.sort(scores), ratings)


@fails("ties", "with tied scores the value depends on the order in the data", "over all orders of tied items")
class FirstOfTied(Good):
    def share(self, scores, ratings):
        return ratings[np.argsort(-scores, kind="stable")[0]] / 5


@fails("constant scores", "a model that scores all items alike gets the best value, 0", "count one half")
class InversionsOnly(Good):
    better: ClassVar = "lower"

    def share(self, scores, ratings):
        return np.mean((scores[:, None] < scores) & (ratings[:, None] > ratings))


@fails("missing scores", "an item without a score (NaN) does not stand behind all others", "-np.inf, scores)")
class MissingFirst(Good):
    def of_user(self, scores, ratings):
        return self.share(np.where(np.isnan(scores), np.inf, scores), ratings)


@fails("missing scores", "an item without a score (NaN) does not stand behind all others", "or return NaN")
class MissingForgotten(Good):
    def of_user(self, scores, ratings):
        known = ~np.isnan(scores)
        return self.share(scores[known], ratings[known])


@fails("writing", "`of_user` changes the scores that it is given", "scores.copy()")
class ChangesScores(Good):
    def of_user(self, scores, ratings):
        scores -= scores.mean()
        return super().of_user(scores, ratings)


@fails("writing", "ValueError: sort array is read-only", "as in ratings.copy()")
class SortsRatings(Good):
    def of_user(self, scores, ratings):
        ratings.sort()
        return 0.5


@fails("repeating", "a user gets another value the second time", "keep nothing between two users")
class Remembers(Good):
    def share(self, scores, ratings):
        KEPT.append(1)
        return 1 / len(KEPT)


@fails("silence", "measuring prints 'a user with", "print nothing")
class Prints(Good):
    def of_user(self, scores, ratings):
        os.write(1, b"a user with some items\n")
        return super().of_user(scores, ratings)


@fails("pickling", "cannot be pickled", "keep numbers and texts as settings")
class KeepsAFunction(Good):
    def __post_init__(self):
        object.__setattr__(self, "share", lambda scores, ratings: 0.5)


@fails("wrong settings", "least='no number' is accepted", "call rankbench.names.check(self)")
class TakesAnything(Good):
    def __post_init__(self):
        pass


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_metric_fails_the_check_that_is_for_it(name):
    metric, wanted, seen, remedy = BROKEN[name]
    found = looked(wanted, metric())
    assert found.name == wanted and found.bad, found.line
    assert seen in found.seen and remedy in found.remedy, found.line


def test_every_check_has_a_metric_that_breaks_it():
    assert {wanted for _, wanted, _, _ in BROKEN.values()} == set(OF_METRICS.checks)


@pytest.mark.parametrize("name", OF_METRICS.checks)
def test_metrics_that_keep_the_rules_pass_every_check(name):
    for metric in (Good(), Good(least=4.0), MeanGap()):
        found = looked(name, metric)
        assert not found.bad, found.line
    silent = name in ("direction", "constant scores")
    assert (found.outcome == "not applicable") == silent  # of a mean that is not about an order


def test_what_passes_is_told_with_its_numbers():
    told = {name: looked(name, Good()).seen for name in OF_METRICS.checks}
    assert told["declarations"] == "higher is better, from 0 to 1, version 1"
    assert told["direction"] == "scores equal to the ratings get 1, with the sign turned around 0"
    assert told["constant scores"] == "a model that scores all items alike gets 0.5, the best is 1"
    assert looked("values", Anything()).seen == "a number for each of 200 users"
    assert re.fullmatch(r"a number for \d+ of 200 users, the others are left out", told["values"])


@dataclass(frozen=True)
class Correlation(Good):
    """A value that constant scores have not."""

    definition: ClassVar = "Pearson's correlation; left out: users with scores or ratings that are all alike"
    limits: ClassVar = (-1, 1)

    def of_user(self, scores, ratings):
        spread = np.std(scores) * np.std(ratings)  # NaN where a score is
        return np.mean((scores - scores.mean()) * (ratings - ratings.mean())) / spread if spread > 0 else np.nan


def test_a_metric_may_leave_out_users_without_scores_or_with_constant_ones():
    found = {name: looked(name, Correlation()) for name in OF_METRICS.checks}
    assert not any(one.bad for one in found.values())
    assert found["constant scores"].seen == "every user is left out"


MINE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np

@dataclass(frozen=True)
class Mine:
    definition: ClassVar = "mean rating of the items with the best score"
    better: ClassVar = "higher"
    limits: ClassVar = (0, 5)
    version: ClassVar = 1

    def of_user(self, scores, ratings):
        scores = np.where(np.isnan(scores), -np.inf, scores)
        return ratings[scores == scores.max()].mean()

class Hangs(Mine):
    def of_user(self, scores, ratings):
        while np.isnan(scores).all(): pass
        return super().of_user(scores, ratings)
"""


@pytest.mark.slow
def test_the_command_checks_a_metric_of_a_file(cli, here):
    (here / "mine.py").write_text(MINE)
    shown = cli("check", "mine.py:Mine").out.splitlines()
    assert shown[0] == "ok     declarations: higher is better, from 0 to 5, version 1"
    assert shown[-1] == f"{len(OF_METRICS.checks) - 1} passed, 1 not applicable"
    (here / "mine.py").write_text(MINE.replace("ClassVar = 1", "ClassVar = 0"))
    assert "all others: need a metric that passes 'declarations'" in cli("check", "mine.py:Mine", code=1).out


@pytest.mark.slow
def test_a_metric_that_hangs_fails_the_check_and_the_others_go_on(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    found = {one.name: one for one in checked(OWN_METRICS.resolve(f"{tmp_path / 'mine.py'}:Hangs"), 3)}
    assert set(found) == set(OF_METRICS.checks)
    late = {name: one.remedy for name, one in found.items() if one.bad}
    assert late == {"missing scores": "use NumPy on whole arrays; --timeout gives more time"}


def test_what_is_no_metric_of_ones_own_is_refused_in_one_line(cli, tmp_path):
    (tmp_path / "mine.py").write_text(MINE.replace("    version: ClassVar = 1\n", ""))
    assert "has no version: every metric needs one" in cli.refuses("check", f"{tmp_path / 'mine.py'}:Mine")
