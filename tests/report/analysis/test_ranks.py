"""Average ranks over data sets and their critical-difference diagram, on the example of Demsar (2006)."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import made_up, made_up_study, no_values, prepared, silent, store_in, tiny

from rankbench.experiments import Figure
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis import ranks as of_ranks
from rankbench.report.analysis.ranks import diagram, draw_ranks, ranks, ranks_svg
from rankbench.report.study import study as of_folder
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

# The areas under the curve of C4.5 with and without two of its parameters on 14 data sets (Demsar 2006, Table 6);
# 0.9751 is printed as 0.975, but the paper ranks it before the other
AREAS = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip
SOLVERS = ("sgd[rank=2]", "sgd[rank=3]", "sgd[rank=4]", "global")
NAMES = ["Global ranking", "SGD, rank 3", "SGD, rank 4", "SGD, rank 2"]  # by average rank
TWO = np.repeat(AREAS[:, [0, 3]], 2, axis=0)[:6] * np.linspace(0.9, 1, 6)[:, None]


def studied(folder, values, solvers=SOLVERS, data="low-rank[users=20,items={},per_user=20]", **changes):
    """The study of an experiment with a row of `values` for each data set, by the metric that is its second."""
    names = tuple(data.format(30 + number) for number in range(len(values)))
    figure = changes.pop("figure", Figure("bars", metric="ndcg@5"))
    experiment = tiny(data=names, solvers=solvers, repetitions=1, figure=figure, **changes)

    def value(cell):
        return float(values[names.index(cell.place.data.written), solvers.index(cell.solver.written)])

    return made_up_study(folder, experiment, value, arrays=no_values)


def test_the_ranks_are_those_of_the_paper_and_the_verdicts_close_to_its_own(tmp_path):
    found = ranks(studied(tmp_path, AREAS))
    assert list(found.solvers) == NAMES and found.data_sets == 14
    assert found.ranks == pytest.approx((1.964, 2.000, 2.893, 3.143), abs=5e-4)
    start = "Average ranks by NDCG@5 (higher is better) over 14 data sets: Global ranking 1.96, SGD, rank 3 2.00"
    assert found.text.startswith(start)
    assert found.alike == (tuple(NAMES),)  # Nemenyi's critical difference is 1.25, the largest difference 1.18
    assert "than SGD, rank 3 0." in found.text and all(low < chance < high for chance, low, high in found.chances)


def test_a_clear_difference_over_five_data_sets_is_told(tmp_path):
    values = np.array([[0.9, 0.5, 0.4], [0.8, 0.4, 0.3], [0.9, 0.6, 0.5], [0.7, 0.5, 0.2], [0.95, 0.3, 0.2]])
    found = ranks(studied(tmp_path, values, SOLVERS[:3]))
    assert not any({"SGD, rank 2", "SGD, rank 4"} <= set(run) for run in found.alike)


def test_the_diagram_has_every_solver_at_its_rank_and_a_bar_over_those_not_told_apart(tmp_path):
    found = ranks(studied(tmp_path, AREAS))
    (axis,) = diagram(found).axes
    stems = {line.get_xdata()[0]: line for line in axis.lines if len(line.get_xdata()) == 3}
    assert sorted(stems) == pytest.approx(found.ranks)
    texts = [text.get_text().strip() for text in axis.texts]
    assert all(any(name in text for text in texts) for name in NAMES)
    bars = [tuple(line.get_xdata()) for line in axis.lines if line.get_linewidth() == 2.5]
    places = dict(zip(found.solvers, found.ranks, strict=True))
    expected = [(places[names[0]] - 0.05, places[names[-1]] + 0.05) for names in found.alike]
    assert bars and np.allclose(bars, expected)


def test_fewer_than_five_data_sets_have_no_ranks(tmp_path):
    assert ranks(studied(tmp_path / "four", TWO[:4], ("sgd", "global"))) is None
    assert ranks(studied(tmp_path / "five", TWO[:5], ("sgd", "global"))) is not None
    assert ranks(studied(tmp_path / "alone", TWO[:5, :1], ("sgd",))) is None


def test_data_sets_that_differ_in_what_is_swept_count_once(tmp_path):
    assert ranks(studied(tmp_path, TWO, ("sgd", "global"), figure=Figure("sweep", x="items"))) is None


def test_a_data_set_on_which_a_solver_failed_does_not_count(tmp_path):
    values = TWO.copy()
    values[2, 1] = np.nan
    assert ranks(studied(tmp_path, values, ("sgd", "global"))).data_sets == 5


def test_the_report_has_the_diagram_as_files_a_sentence_and_equal_bytes(tmp_path):
    study = studied(tmp_path, TWO, ("sgd", "global"))
    found = ranks(study)
    write_report(ResultsFolder(tmp_path, silent), silent, page=False)
    figures = tmp_path / "report" / "figures"
    text = (tmp_path / "report" / "tiny.md").read_text()
    assert found.text in text and "(figures/tiny-ranks.png)" in text
    draw_ranks(found, tmp_path, "again")
    for ending in ("png", "pdf"):
        assert (figures / f"tiny-ranks.{ending}").read_bytes() == (tmp_path / f"again.{ending}").read_bytes()
    svg = ranks_svg(found)
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>") and svg == of_ranks.ranks_svg(found)


def test_plot_draws_the_ranks_too(cli, tmp_path):
    studied(tmp_path, TWO, ("sgd", "global"))
    said = cli("report", "tiny", "--to", tmp_path / "f", "--out", tmp_path).out
    assert str(tmp_path / "f" / "tiny-ranks.pdf") in said
    assert (tmp_path / "f" / "tiny-ranks.png").stat().st_size > 1000


def test_values_of_users_say_how_surely_ranks_hold_on_new_data(tmp_path):
    study = studied(tmp_path, TWO, ("sgd", "global"))
    without = ranks(study).chances
    for number, result in enumerate(study.results):
        noise = 0.1 * np.random.default_rng(number).standard_normal(20)
        store_in(tmp_path).save(result, {one.label: result.value(one.label) + noise for one in result.cell.measures})
    found = ranks(of_folder(ResultsFolder(tmp_path, silent), "tiny")).chances
    assert found != without and all(low <= chance <= high for chance, low, high in found)


def test_solvers_are_compared_where_both_were_planned(tmp_path):
    data = tuple(f"low-rank[users={users},items={items},per_user=20]" for items in range(30, 35) for users in (20, 30))
    figure = Figure("sweep", x="users", metric="ndcg@5")
    run = prepared(tmp_path, tiny(data=data, solvers=("sgd", "global"), repetitions=1, figure=figure))
    run.open()
    for number, cell in enumerate(run.plan.cells):
        users = cell.place.data.setting("users")
        level = (0.9 if users == 20 else 0.3) if cell.solver.name == "sgd" else 0.5
        noise = 0.1 * np.random.default_rng(number).standard_normal(users)
        run.keep(made_up(cell, level, counted=()), {one.label: level + noise for one in cell.measures})
    study = run.study()
    kept = [cell for cell in run.plan.planned
            if cell.solver.name == "sgd" or cell.place.data.setting("users") == 30]  # fmt: skip
    found = ranks(replace(study, plan=replace(study.plan, planned=tuple(kept))))
    assert found.solvers == ("Global ranking", "SGD") and found.ranks == (1.0, 2.0)
