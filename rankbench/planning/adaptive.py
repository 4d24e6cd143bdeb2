"""Searches whose later trials depend on the results of earlier ones: successive halving, and TPE by Optuna.

Both depend on stored results alone, so that an interrupted search goes on where it was, and any driver makes the same
trials. All solvers of an experiment get the same rungs, or the same number of trials, of the same budgets.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.experiments.spaces import Range, Space
from rankbench.names import Named, with_settings
from rankbench.planning.widening import value_of
from rankbench.records.cells import Cell
from rankbench.records.results import Result

INSTALL = 'pip install "rankbench[tpe]"'

_REPEATS = 100  # proposals in a row that were tried already, after which a sampler is given up


@dataclass(frozen=True)
class Halving:
    """Successive halving (Jamieson and Talwalkar 2016): the best trials of a rung are trained again, for longer."""

    steps: tuple[int, ...]  # of the trials of each rung, rising
    sizes: tuple[int, ...]  # how many trials each rung has, falling

    @property
    def most(self) -> int:
        """How many trials there are in all, if enough of them end well."""
        return sum(self.sizes)

    def begun(self, trials: Sequence[Cell]) -> tuple[Cell, ...]:
        """The trials of the first rung."""
        return tuple(self._on(trial, 0) for trial in trials)

    def more(self, trials: Sequence[Cell], results: Sequence[Result]) -> tuple[Cell, ...]:
        """The trials of the next rung: those of the last one with the best values; empty after the last rung."""
        rung = trials[-1].rung + 1
        if rung == len(self.steps):
            return ()
        known = {place: value for place in finals(trials) if (value := value_of(results[place])) is not None}
        ranked = sorted(known, key=known.__getitem__, reverse=True)
        return tuple(self._on(trials[place], rung) for place in sorted(ranked[: self.sizes[rung]]))

    def _on(self, trial: Cell, rung: int) -> Cell:
        steps = self.steps[rung]
        return replace(trial, budget=replace(trial.budget, steps=steps), every=steps, rung=rung)


def halving(trials: int, steps: int, eta: int) -> Halving:
    """The rungs of so many trials: one in eta goes on, with eta times the steps, and the last have all steps."""
    count = 1
    while trials >= eta**count and steps >= eta**count:
        count += 1
    rungs = range(count)
    return Halving(
        tuple(steps // eta ** (count - 1 - rung) for rung in rungs), tuple(trials // eta**rung for rung in rungs)
    )


@dataclass(frozen=True)
class TPE:
    """Trials that Optuna proposes by tree-structured Parzen estimators (Bergstra et al. 2011), one after the other."""

    solver: Named
    space: Space
    first: int  # trials that are drawn before any is proposed
    most: int  # trials in all

    def more(self, trials: Sequence[Cell], results: Sequence[Result]) -> tuple[Cell, ...]:
        """The next trial: a proposal that was not tried, else a random one; empty if there are enough or no others."""
        if len(trials) >= self.most:
            return ()
        optuna = required_optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        names = (trials[0].stream_line, trials[0].place.draw("search"), len(trials))
        seed = int(stream(trials[0].seed, "tpe", *names).integers(2**32))
        samplers = optuna.samplers
        for sampler in (samplers.TPESampler(seed=seed, n_startup_trials=self.first), samplers.RandomSampler(seed)):
            if solver := self._untried(optuna, sampler, trials, results):
                return (replace(trials[0], solver=solver),)
        return ()

    def _untried(self, optuna: Any, sampler: Any, trials: Sequence[Cell], results: Sequence[Result]) -> Named | None:
        """The first proposal of a sampler that was not tried; None after many in a row that were."""
        distributions = {name: _distribution(optuna, values) for name, values in sorted(self.space.items())}
        study = optuna.create_study(sampler=sampler, direction="maximize")
        for trial, result in zip(trials, results, strict=True):
            study.add_trial(_told(optuna, trial, result, distributions))
        tried = {trial.solver.settings for trial in trials}
        for _ in range(_REPEATS):
            proposed = study.ask(distributions).params
            settings = {name: _rounded(self.space[name], value) for name, value in proposed.items()}
            solver = with_settings(self.solver, settings)
            if solver.settings not in tried:
                return solver
        return None


def required_optuna() -> Any:
    """The package Optuna; an error that says how to install it if it is missing."""
    try:
        return importlib.import_module("optuna")
    except ImportError:
        problem = 'method = "tpe" needs the package optuna, which is not installed'
        raise UserError(problem, remedy=INSTALL) from None


def finals(trials: Sequence[Cell]) -> list[int]:
    """The places of the trials among which the best is chosen: those of the last rung."""
    return [place for place, trial in enumerate(trials) if trial.rung == trials[-1].rung]


def _told(optuna: Any, trial: Cell, result: Result, distributions: Mapping[str, object]) -> Any:
    """A trial as Optuna's study takes it."""
    value, states = value_of(result), optuna.trial.TrialState
    settings = dict(trial.solver.settings)
    return optuna.trial.create_trial(
        state=states.FAIL if value is None else states.COMPLETE,
        value=value,
        params={name: settings[name] for name in distributions},
        distributions=distributions,
    )


def _distribution(optuna: Any, values: Range | tuple[Any, ...]) -> Any:
    """The values of a setting as Optuna has them."""
    kinds = optuna.distributions
    if not isinstance(values, Range):
        return kinds.CategoricalDistribution(values)
    kind = kinds.IntDistribution if values.whole else kinds.FloatDistribution
    return kind(values.low, values.high, log=values.scale == "log")


def _rounded(values: Range | tuple[Any, ...], value: Any) -> Any:
    """A proposed value as a trial has it: a number with three digits, within the range."""
    return values.rounded(value) if isinstance(values, Range) else value
