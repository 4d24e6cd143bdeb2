"""Tests of the protocol in `rankbench.core.contract`, which the test class of every solver inherits."""

import json
import tomllib
from dataclasses import FrozenInstanceError, replace
from itertools import islice
from typing import Any, ClassVar, get_args, get_type_hints

import numpy as np
import pytest
from solvers.promises import DESCENDS, ENDS, GAP, LEARNS, PROMISES, Promise

from rankbench import models
from rankbench.arrays.npz import fingerprint
from rankbench.checks.given import edge
from rankbench.checks.kit import OF_SOLVERS
from rankbench.checks.material import EDGES, STEPS, Subject, accepted, course, print_of, ratings, run, scores
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import DECLARATIONS, Determinism
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.views import Comparisons, View, offer
from rankbench.distributed.in_process import InProcess
from rankbench.names import build, changed_settings, settings_of, show
from rankbench.solvers import SOLVERS

MANY = 40  # steps after which a solver that ends by itself has ended
CHECKS = OF_SOLVERS.checks
KIT = [name for name in CHECKS if name not in ("edges", "speed of score")]  # edges stand below, times are no test
NOT_EVERYWHERE = ("features", "wrong settings", "objective", "last model")  # which solvers need not pass


class SolverContract:
    """What every solver promises; a subclass names its `solver`, and `promises.py` has what else that one promises."""

    solver: ClassVar[Any]

    @property
    def promises(self) -> Promise:
        """What this solver promises beyond the contract."""
        return PROMISES[type(self).__name__]

    @pytest.fixture
    def train(self) -> View:
        """What the harness would hand over."""
        return offer(self.solver, ratings())

    @pytest.fixture
    def name(self) -> str:
        """What the command line calls the solver."""
        cls = type(self.solver)
        return next(name for name, home in SOLVERS.entries.items() if home == f"{cls.__module__}:{cls.__name__}")

    # the same again

    @pytest.mark.parametrize("name_of_check", KIT)
    def test_it_passes_the_test_kit(self, name_of_check):
        """The checks that `rankbench check` makes of a user's own solver."""
        found = CHECKS[name_of_check](Subject(self.solver, threads=(1, 2, 3, 8)))
        assert not found.bad, found.line
        racy = self.solver.determinism is Determinism.RACY and name_of_check in ("same seed", "looking", "side by side")
        assert found.outcome == "passed" or name_of_check in NOT_EVERYWHERE or racy

    def test_with_one_thread_a_racy_solver_repeats_itself(self, train):
        if self.solver.determinism is Determinism.RACY:
            assert course(self.solver, train) == course(self.solver, train, look=True)

    # what it is given

    def test_features_are_withheld_unless_declared(self):
        bare = replace(ratings(), item_features=None)
        if self.solver.needs_features:
            with pytest.raises(UserError, match="features"):
                offer(self.solver, bare)
        else:
            offered = offer(self.solver, ratings())
            assert offered.item_features is None
            assert course(self.solver, offered) == course(self.solver, offer(self.solver, bare))

    def test_only_declared_kinds_of_data_are_offered(self):
        assert isinstance(offer(self.solver, ratings()), accepted(self.solver))
        if Comparisons in accepted(self.solver):
            assert isinstance(offer(self.solver, ratings().comparisons()), Comparisons)
        else:
            with pytest.raises(UserError, match="comparisons"):
                offer(self.solver, ratings().comparisons())

    def test_its_steps_are_annotated_with_the_kinds_of_data_it_declares(self):
        hint = get_type_hints(type(self.solver).steps)["train"]
        assert set(get_args(hint) or (hint,)) == set(accepted(self.solver))

    # what it makes of it

    @pytest.mark.parametrize("small", EDGES)
    def test_it_works_at_the_edge(self, small):
        found = edge(Subject(self.solver), small, EDGES[small]())
        assert not found.bad, found.line

    def test_it_orders_what_it_was_trained_on_better_than_chance(self, train):
        if LEARNS not in self.promises:
            pytest.skip("promises.py has no promise that it learns")
        pairs = ratings().comparisons()
        with one_blas_thread():
            for step in run(self.solver, train, steps=20):
                model = step.model
            ahead = model.score(pairs.users, pairs.better) - model.score(pairs.users, pairs.worse)
        assert np.mean(ahead > 0) > 0.6

    def test_the_objective_never_rises_where_that_is_promised(self, train):
        if DESCENDS not in self.promises:
            pytest.skip("promises.py has no promise that its objective never rises")
        objectives = np.array([step.objective() for step in run(self.solver, train, MANY)])
        assert len(objectives) > 1
        assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[:-1])).all()

    def test_the_gap_bounds_the_distance_to_the_best_objective(self, train):
        steps = list(run(self.solver, train, MANY))
        assert [step.gap is not None for step in steps] == [GAP in self.promises] * len(steps)
        if GAP in self.promises:
            objectives, gaps = np.array([(step.objective(), step.gap()) for step in steps]).T
            rounding = 1e-10 * np.abs(objectives)
            assert (gaps >= -rounding).all()
            assert (objectives - objectives.min() <= gaps + rounding).all()

    def test_it_ends_where_that_is_promised_and_its_last_model_stays(self, train):
        with one_blas_thread():
            steps = self.solver.steps(train, stream(0))
            prints = [(step.model, print_of(step.model, train)) for step in islice(steps, MANY)]
            assert (next(steps, None) is None) == (ENDS in self.promises)
            model, print_when_it_came = prints[-1]
            if ENDS in self.promises:
                assert print_of(model, train) == print_when_it_came

    # what it is called

    def test_it_is_built_by_name(self, name):
        solver = SOLVERS.make(name)
        assert type(solver) is type(self.solver)
        assert all(hasattr(solver, declaration) for declaration in DECLARATIONS)

    def test_its_settings_survive_the_command_line(self, name):
        assert SOLVERS.make(show(name, settings_of(self.solver))) == self.solver
        assert SOLVERS.make(show(name, changed_settings(self.solver))) == self.solver

    def test_its_settings_survive_a_toml_file(self, name):
        settings = {key: value for key, value in settings_of(self.solver).items() if value is not None}
        toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        assert build(type(self.solver), tomllib.loads(toml), name) == self.solver

    def test_it_is_frozen(self):
        for name in settings_of(self.solver):
            with pytest.raises(FrozenInstanceError):
                setattr(self.solver, name, None)

    def test_an_unknown_setting_is_named(self, name):
        with pytest.raises(UserError, match="no_such_setting"):
            SOLVERS.make(f"{name}[no_such_setting=1]")


class InParts:
    """What a solver with its users in two parts promises beside; put before `SolverContract`."""

    @pytest.mark.parametrize("small", ["empty", "one-comparison", "all-tied"])
    def test_it_works_at_the_edge(self, small):
        SolverContract.test_it_works_at_the_edge(self, small)

    def test_one_user_cannot_be_cut_in_two(self):
        with pytest.raises(UserError, match="partitions=2 is above the number of users, 1"):
            list(run(self.solver, offer(self.solver, EDGES["one-user"]())))

    def test_on_an_executor_the_models_score_alike_and_have_the_same_hash(self, train):
        with one_blas_thread():
            plain = [(fingerprint(s.model), s.objective(), scores(s.model, train)) for s in run(self.solver, train)]
            steps = islice(self.solver.steps_on(InProcess(), train, stream(0)), STEPS)
            for step, (digest, objective, expected) in zip(steps, plain, strict=True):
                model = step.model
                assert (model.digest(), step.objective()) == (digest, objective)
                assert scores(model, train).tobytes() == expected.tobytes()
                whole = model.score_all(np.arange(train.n_users)).ravel()
                np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-14)

    def test_a_scattered_model_is_gathered_to_be_saved(self, train, tmp_path):
        with one_blas_thread():
            step = next(self.solver.steps_on(InProcess(), train, stream(0)))
            models.save(step.model, tmp_path / "model.npz")
            assert fingerprint(models.load(tmp_path / "model.npz")) == step.model.digest()

    def test_a_user_or_item_that_is_not_there_is_named(self, train):
        with one_blas_thread():
            model = next(self.solver.steps_on(InProcess(), train, stream(0))).model
            for users, items in (([train.n_users], [0]), ([0], [train.n_items]), ([-1], [0])):
                with pytest.raises(UserError, match="is out of range: ids run from 0 to"):
                    model.score(np.array(users), np.array(items))
            assert len(model.score(np.array([], np.int32), np.array([], np.int32))) == 0
