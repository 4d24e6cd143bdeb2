"""How well comparisons judge: which family wins on data of a known kind, and which weak searches are found out.

As a script it repeats the draws of the slow tests more often: PYTHONPATH=tests python tests/known_winners.py 100
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from helpers import silent

from rankbench.api.session import Session
from rankbench.core.contract import Floats
from rankbench.execution import machine
from rankbench.execution.isolation import Caps
from rankbench.execution.worker import Ended, Task, _failure, work
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Range
from rankbench.own_data.choosing import Wishes
from rankbench.own_data.experiment_file import experiment_of
from rankbench.own_data.fitting_choice import choice_for
from rankbench.records.cells import Selection
from rankbench.records.machines import Machine
from rankbench.records.results import Point
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Study
from rankbench.report.analysis.evidence import key_of
from rankbench.report.analysis.strength import strengths
from rankbench.report.render.answer import ranking

Found = TypeVar("Found")
FACTORS = ("mf", "sgd", "altsvm", "rmc", "smc")
OF_FEATURES = ("frsvm", "imc", "mprank", "ranksvm-joint", "ranksvm-var")
OF_ITEMS = ("popularity", "global")
CHEAP = ("mf", "sgd", "altsvm", "smc")


@dataclass(frozen=True)
class Here:
    """A workplace in this process, which saves the start of one for each of thousands of small cells."""

    places: int = 1
    nodes: int = 1
    machine: Machine = field(default_factory=machine.describe)

    def run(self, task: Task, caps: Caps, stop: threading.Event, alone: bool) -> tuple[Ended, Machine]:
        """Run one cell; what it raises is its failure."""
        points: list[Point] = []
        try:
            ended = work(points.append, task)
        except Exception as error:
            ended = _failure(error)
        return replace(ended, curve=tuple(points), wall=0.1, load=0.0), self.machine


def studied(folder: Path, experiment: Experiment, seed: int = 0) -> Study:
    """The study of an experiment that was run in this process."""
    session = Session(ResultsFolder(folder, silent), Selection(seed=seed), workplace=Here())
    return session.execute(session.prepared(experiment))


# Data of a known kind.


def of_low_rank(rng: np.random.Generator, path: Path) -> str:
    """Ratings of rank 3 with noise."""
    users, items = 100, 60
    scores = rng.normal(size=(users, 3)) @ rng.normal(size=(3, items)) / np.sqrt(3)
    return _written(rng, path, scores + 0.4 * rng.normal(size=(users, items)))


def of_popularity(rng: np.random.Generator, path: Path) -> str:
    """Ratings in which all users agree about the items, but for noise."""
    users, items = 100, 60
    return _written(rng, path, rng.normal(size=items) + rng.normal(size=(users, items)), each=20)


def of_features(rng: np.random.Generator, path: Path) -> str:
    """Ratings that are linear in five features of the items, with weights of each user's own; few for each item."""
    users, items = 60, 240
    features = rng.normal(size=(items, 5))
    scores = rng.normal(size=(users, 5)) @ features.T / np.sqrt(5)
    beside = path.with_name(f"{path.stem}-features.csv")
    beside.write_text("item," + ",".join(f"f{number}" for number in range(5)) + "\n" + "".join(
        f"i{item}," + ",".join(map(repr, map(float, row))) + "\n" for item, row in enumerate(features)))  # fmt: skip
    return f"{_written(rng, path, scores + 0.4 * rng.normal(size=(users, items)))}[features={beside}]"


def _written(rng: np.random.Generator, path: Path, scores: Floats, each: int = 30) -> str:
    """The path of a file of `each` ratings from 1 to 5 of each user."""
    lines = ["user,item,rating\n"]
    for user, row in enumerate(scores):
        for item in rng.choice(len(row), each, replace=False):
            lines.append(f"u{user},i{item},{np.clip(np.round(3 + 1.2 * row[item]), 1, 5):g}\n")
    path.write_text("".join(lines))
    return str(path)


FAMILIES: dict[Callable[[np.random.Generator, Path], str], tuple[str, ...]] = {
    of_low_rank: FACTORS, of_popularity: OF_ITEMS, of_features: OF_FEATURES,
}  # fmt: skip


def winner(
    kind: Callable[[np.random.Generator, Path], str], seed: int, folder: Path, repetitions: int = 1
) -> tuple[str, bool]:
    """Which solver is first on data of a kind, in the comparison that `on` makes of the cheap solvers.

    And whether a solver of the right family is first, or no further behind than the margin.
    """
    path = folder / f"{kind.__name__}-{seed}.csv"
    name = kind(np.random.default_rng(seed), path)
    asked = (*FACTORS, *(OF_FEATURES if kind is of_features else ()))
    found = studied(
        folder / "out", experiment_of(choice_for(name, Wishes(asked, repetitions=repetitions, seed=seed))), seed
    )
    standing = ranking(found)
    own = next(one.row for one in standing if one.group.solver.name in FAMILIES[kind])
    best = standing[0].row
    assert own.measured is not None and best.measured is not None
    return standing[0].group.solver.name, best.measured - own.measured <= 0.01 * best.measured


# Searches that are sound, and searches that are not.


def sound(solver: str, seed: int, folder: Path) -> Experiment:
    """The search that `on` makes for one solver on data that suits it."""
    path = folder / f"sound-{solver}-{seed}.csv"
    name = of_low_rank(np.random.default_rng(1000 + seed), path)
    chosen = experiment_of(choice_for(name, Wishes((solver,), repetitions=3, seed=seed)))
    return replace(chosen, solvers=(solver,))


def crippled(solver: str, how: str, seed: int, folder: Path) -> Experiment:
    """The same search with one thing wrong."""
    good = sound(solver, seed, folder)
    assert good.tune is not None
    space = dict(good.tune.space[solver])
    penalty = next(name for name in ("lam", "share") if name in space)
    range_, tune = space[penalty], good.tune
    assert isinstance(range_, Range)
    if how == "a range cut off":
        middle = (range_.low * range_.high) ** 0.5
        cut = (
            Range(range_.high * 0.3, range_.high * 6, "log") if seed % 2 else Range(middle / 3000, middle / 150, "log")
        )
        cut = Range(0.2, 0.99, "log") if penalty == "share" else cut
        return replace(good, tune=replace(tune, widen=0, space={solver: {**space, penalty: cut}}))
    if how == "rank 1":
        fixed = f"{solver}[rank=1]"
        return replace(good, solvers=(fixed,), tune=replace(tune, space={fixed: {penalty: range_}}))
    if how == "two steps":
        return replace(good, budget=Budget(steps=2))
    if how == "a wrong penalty":
        fixed = f"{solver}[{penalty}={'0.9' if penalty == 'share' else '100000.0'}]"
        rest = {name: values for name, values in space.items() if name != penalty}
        return replace(good, solvers=(fixed,), tune=replace(tune, space={fixed: rest}))
    return replace(good, tune=replace(tune, trials=2, widen=0))


WAYS = ("a range cut off", "rank 1", "two steps", "a wrong penalty", "two trials")


def sound_reasons(solver: str, seed: int, folder: Path) -> tuple[str, ...]:
    """Why a sound search is not certified."""
    found = studied(folder, sound(solver, seed, folder), seed)
    return strengths(found)[key_of(found.groups[-1])]


def weakened(solver: str, how: str, seed: int, folder: Path) -> tuple[tuple[str, ...], float]:
    """Why a crippled search is not certified, and how much worse its solver is than after a sound one."""
    values, why = [], ()
    for name, experiment in (("sound", sound(solver, seed, folder)), ("weak", crippled(solver, how, seed, folder))):
        found = studied(folder / name, experiment, seed)
        why = strengths(found)[key_of(found.groups[-1])]
        values.append(np.mean(found.groups[-1].values(found.measures[0].label)))
    return why, 1 - values[1] / values[0]


def in_folder(ask: Callable[[Path], Found]) -> Found:
    """What a function of a new folder returns."""
    with TemporaryDirectory() as folder:
        return ask(Path(folder))


def main(draws: int, wanted: Sequence[str]) -> None:
    """Print how many winners are right, and how many searches are judged rightly."""
    for name, part in {"winners": _winners, "sound": _sound, "crippled": _crippled}.items():
        if not wanted or name in wanted:
            part(draws)


def _winners(draws: int) -> None:
    """How often the right family is first on data of each kind."""
    for kind, right in FAMILIES.items():
        found = [in_folder(partial(winner, kind, seed)) for seed in range(draws)]
        names = Counter(name for name, _ in found)
        first, near = sum(names[name] for name in right), sum(close for _, close in found)
        print(f"{kind.__name__}: first {first}, first or within the margin {near} of {draws};", dict(names), flush=True)


def _sound(draws: int) -> None:
    """How many sound searches are marked."""
    marked = 0
    for number in range(draws):
        solver = CHEAP[number % len(CHEAP)]
        if why := in_folder(lambda folder, solver=solver, number=number: sound_reasons(solver, number, folder)):
            marked += 1
            print("   ", solver, number, why, flush=True)
    print(f"sound searches that are marked: {marked} of {draws}", flush=True)


def _crippled(draws: int) -> None:
    """How many crippled searches are marked, of those whose solver is worse for it."""
    total, missed = 0, 0
    for number in range(10 * draws):
        how, solver = way(number)
        why, loss = in_folder(partial(weakened, solver, how, number))
        if loss > 0.01:
            total, missed = total + 1, missed + (not why)
            print("   ", how, solver, f"{loss:.3f}", why, flush=True)
        if total == draws:
            break
    print(f"crippled searches, at least 1 % worse, that are marked: {total - missed} of {total}", flush=True)


def way(number: int) -> tuple[str, str]:
    """What is wrong with a search of this number, and its solver."""
    how, solver = WAYS[number % len(WAYS)], CHEAP[number // len(WAYS) % len(CHEAP)]
    return ("two steps" if (how, solver) == ("rank 1", "smc") else how), solver


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
