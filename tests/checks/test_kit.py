"""The test kit for solvers: one that keeps the rules passes, and each broken one fails the check that is for it."""

import re

import pytest
from checks.broken import CASES, Good, NeedsFeatures
from helpers import OWN_SOLVERS, SOLVER_HEAD

from rankbench.checks.kit import OF_SOLVERS, checked, looked
from rankbench.core.errors import UserError
from rankbench.solvers import SOLVERS

CHECKS = OF_SOLVERS.checks


def own(folder, *lines):
    """A user's solver whose `steps` has these lines."""
    path = folder / "mine.py"
    body = "".join(f"        {line}\n" for line in lines)
    path.write_text(f"{SOLVER_HEAD}\nclass Broken(Mine):\n    def steps(self, train, rng, threads=1):\n{body}")
    return SOLVERS.resolve(f"{path}:Broken")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that does not let go
def test_each_broken_solver_fails_the_check_that_is_for_it(name):
    case = CASES[name]
    found = looked(case.check, case.solver())
    assert found.name == case.check and found.bad, found.line
    assert case.seen in found.seen and case.remedy in found.remedy, found.line


@pytest.mark.parametrize("name", CHECKS)
def test_a_solver_that_keeps_the_rules_passes_every_check(name):
    assert not looked(name, Good()).bad


@pytest.mark.parametrize("name", OWN_SOLVERS)
def test_each_solver_of_rankbench_trains_on_small_data_or_says_what_is_too_large_for_it(name):
    found = looked("edges", SOLVERS.make(name))
    assert not found.bad, found.line
    refused = name in ("altsvm", "bpr", "lcr", "robirank", "sgd")
    assert ("is larger than both sides" in found.seen) == refused


def test_checks_that_say_nothing_of_a_solver_say_why():
    found = {name: looked(name, NeedsFeatures()) for name in CHECKS}
    silent = {name: one.seen.partition(",")[0] for name, one in found.items() if one.outcome == "not applicable"}
    assert silent == {
        "features": "declared to need them",
        "objective": "no step has one",
        "saving": "a Scores cannot be saved",
    }
    assert not any(one.bad for one in found.values())


@pytest.mark.slow
def test_an_optional_package_is_asked_for_or_imported_before_anything_is_looked_at(tmp_path):
    solver = own(tmp_path, "yield from super().steps(train, rng)")
    path = tmp_path / "mine.py"
    text = path.read_text()
    declared = "    from rankbench import Needs\n    needs = Needs(('{}',), 'pip install it')\n"
    path.write_text(text + declared.format("wsgiref"))
    found = {one.name: one for one in checked(SOLVERS.resolve(solver.written), 60)}
    assert found["imports"].outcome == "passed" and not any(one.bad for one in found.values())
    path.write_text(text + declared.format("no_such_package"))
    with pytest.raises(UserError, match="needs a package that is not installed; pip install it"):
        next(checked(SOLVERS.resolve(solver.written), 60))


def test_every_check_has_a_solver_that_breaks_it():
    assert {case.check for case in CASES.values()} == set(CHECKS)


def test_an_error_is_shown_with_the_line_of_the_file(tmp_path):
    found = looked("trains", own(tmp_path, "yield 1 / 0").record)
    assert found.seen == "ZeroDivisionError: division by zero"
    assert re.fullmatch(r"mine\.py, line \d+: yield 1 / 0", found.where)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "seen"),
    [("while True: pass", "took longer than the time limit"), ("os._exit(3)", "the solver ended the process")],
)
def test_a_solver_that_hangs_or_exits_fails_the_check_and_the_others_go_on(tmp_path, line, seen):
    solver = own(tmp_path, "if len(train) < 9:", f"    {line}", "yield from super().steps(train, rng)")
    found = {one.name: one for one in checked(solver, 2)}
    assert set(found) == set(CHECKS) and [one.name for one in found.values() if one.bad] == ["edges"]
    assert found["edges"].seen == seen


@pytest.mark.slow
def test_the_command_says_what_fails_and_its_exit_code_too(cli, here):
    own(here, "yield ItemScores(np.ones(9))")
    for name, said in (("mine.py:Nope", "unknown solver, metric or data set in mine.py: 'Nope'"),
                       ("nope.py:X", "no file 'nope.py' to take the solver, metric or data set 'X' from")):  # fmt: skip
        assert said in cli.refuses("check", name)
    shown = cli("check", "mine.py:Broken", code=1).out.splitlines()
    assert shown[0] == "ok     declarations: learns from Ratings and Comparisons, exact, version 1"
    assert shown[1:3] == ["FAILED steps: `steps` yields a ItemScores", "       yield Step(model)"]
    assert shown[3:] == ["-      all others: need a solver that passes 'steps'", "1 passed, 1 failed, 1 not applicable"]
    assert cli("check", "mine.py:Mine").out.splitlines()[-1] == f"{len(CHECKS) - 2} passed, 2 not applicable"


SMALL = ("-d", "low-rank[users=20,items=30,per_user=20]", "--steps", "2")


def test_a_training_in_this_process_is_profiled(cli):
    shown = cli("check", "sgd[rank=2]", "--profile", *SMALL).out
    assert "| function | calls | own seconds | with its calls |" in shown and "after 2 steps" in shown


def test_what_is_trained_on_has_features_where_they_are_needed_and_may_be_a_file(cli, here):
    assert "feature-low-rank · entries" in cli("check", "frsvm[rank=2]", "--profile", "--steps", "1").out
    rows = "".join(f"{user},{item},{1 + (user + item) % 5}\n" for user in range(9) for item in range(9))
    (here / "own.csv").write_text(f"user,item,rating\n{rows}")
    assert "csv:own.csv · entries" in cli("check", "mf[rank=2]", "--pdb", "-d", "own.csv", "--steps", "1").out


def test_an_error_in_this_process_opens_the_debugger_at_its_line(cli, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("pdb.post_mortem", opened.append)
    solver = own(tmp_path, "yield 1 / 0").written
    shown = cli("check", solver, "--pdb", *SMALL, code=1).out
    assert len(opened) == 1 and "ZeroDivisionError: division by zero (mine.py, line" in shown
    assert "pairwise-error" in cli("check", "sgd[rank=2]", "--pdb", *SMALL).out
