"""A user's own metrics, from a file, a plug-in or Python: measured, shown and checked."""

import shutil
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from house.test_docs import DOCS, blocks

from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.metrics import evaluate, metric, per_user
from rankbench.models import ItemScores
from rankbench.names import registry


@dataclass(frozen=True)
class Gap:
    """The mean score of the best items less that of the others."""

    least: float = 4.0
    definition: ClassVar = "mean score of items rated {least} or better less that of others; left out: one-sided users"
    better: ClassVar = "higher"
    limits: ClassVar = (-np.inf, np.inf)
    version: ClassVar = 3

    def of_user(self, scores, ratings):
        """NaN where one side is empty."""
        good = ratings >= self.least
        return scores[good].mean() - scores[~good].mean() if 0 < good.sum() < len(good) else np.nan


FIRST = next(one.text for one in blocks(DOCS / "howto" / "your-metric.md") if one.file == "first.py")
MODEL = ItemScores(np.array([0.0, 1.0, 5.0]))
TEST = Ratings.from_triples([0, 0, 0, 1, 3, 3], [0, 1, 2, 2, 0, 2], [1, 5, 4, 5, 3, 5.0], 4, 3)


def test_a_record_is_measured_user_by_user():
    found = per_user(MODEL, TEST, ["pairwise-error", Gap(), Gap(least=5.0)])
    assert list(found) == ["pairwise-error", "Gap", "Gap[least=5]"]
    np.testing.assert_array_equal(found["Gap"], [3.0, np.nan, np.nan, 5.0])
    np.testing.assert_array_equal(found["Gap[least=5]"], [1.0 - 2.5, np.nan, np.nan, 5.0])
    assert evaluate(MODEL, TEST, [Gap()]) == {"Gap": 4.0}


def test_a_plug_in_is_found_by_its_name(monkeypatch):
    plugins = {"rankbench.metrics": {"score-gap": f"{__name__}:Gap"}}
    monkeypatch.setattr(registry, "announced", lambda group, path: plugins.get(group, {}))
    record = metric("score-gap[least=5]")
    assert (record.label, record.better, record.version) == ("score-gap[least=5]", "higher", 3)
    assert record.formula == Gap.definition  # braces and all
    assert evaluate(MODEL, TEST, ["score-gap"]) == {"score-gap": 4.0}
    with pytest.raises(UserError, match="unknown metric 'score-gab'; did you mean 'score-gap'"):
        metric("score-gab")


def test_a_file_is_known_by_its_content_and_shown_as_it_was_written(tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "first.py").write_text(FIRST)
    monkeypatch.chdir(tmp_path)
    here, there = (metric(f"{folder}/first.py:First[places=2]") for folder in ("a", "b"))
    assert here.identity == there.identity != here.label
    assert (here.label, there.label) == ("a/first.py:First[places=2]", "b/first.py:First[places=2]")
    assert metric("a/first.py:First").identity != here.identity
    (tmp_path / "b" / "first.py").write_text(FIRST + "# edited\n")
    assert metric("b/first.py:First[places=2]").identity != here.identity
    assert metric("ndcg@10[users=all]").identity == "ndcg@10[users=all]"


def test_held_out_comparisons_are_refused():
    with pytest.raises(UserError, match="metric 'Gap' needs held-out ratings, the data holds comparisons"):
        evaluate(MODEL, Comparisons([0, 1], [0], [1], n_items=3), [Gap()])


def test_what_a_metric_does_not_say_is_asked_for(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Mine:\n"
        "    better = 'upwards'\n    limits = (0, 1)\n    version = 1\n    of_user = max\n"
    )
    with pytest.raises(UserError, match=r"mine\.py:Mine' has no definition: every metric needs one"):
        metric(f"{file}:Mine")
    file.write_text(file.read_text() + "    definition = 'the larger'\n")
    with pytest.raises(UserError, match="has better='upwards': it must be 'higher' or 'lower'"):
        metric(f"{file}:Mine")
    with pytest.raises(UserError, match=r"no file 'gone\.py'"):
        metric("gone.py:Mine")


@pytest.mark.slow
def test_an_experiment_measures_and_reports_by_it(cli, here):
    (here / "first.py").write_text(FIRST)
    (here / "mine.toml").write_text(
        'title = "Mine"\npaper = "none"\nabout = "A metric of my own."\n'
        'data = ["low-rank[users=30,items=30,per_user=20]"]\nsplits = ["n-per-user[n=8]"]\n'
        'solvers = ["global", "sgd"]\nrepetitions = 2\n'
        'metrics = ["first.py:First[places=2]", "pairwise-error"]\n\n[budget]\nsteps = 2\n'
    )
    assert "| First |" in cli("run", "mine.toml", "-q").out
    assert "first.py:First[places=2]" in (here / "results/report/index.html").read_text()
    assert "held-out items by score" in (here / "results/report/index.html").read_text()
    assert "higher is better" in cli("list", "first.py:First").out
    shutil.move("first.py", "second.py")
    shown = cli("table", "mine").out
    assert "first.py:First[places=2]" in shown and "held-out items by score" in shown
    assert "no file 'first.py' to take the metric 'First' from" in cli.refuses("run", "mine.toml", "-q")


def test_the_metric_of_the_documentation_computes_what_it_says():
    space: dict[str, object] = {}
    exec(FIRST, space)
    scores, values = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0, 3.0])
    assert space["First"](places=2).of_user(scores, values) == 2.5
    assert space["First"](places=9).of_user(scores, values) == pytest.approx(10 / 3)
    assert space["First"](places=1).of_user(np.array([3.0, 3.0, np.nan]), values) == 3.5  # tied with the last
