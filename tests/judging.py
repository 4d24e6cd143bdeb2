"""How well comparisons judge: which family wins on data of a known kind, and which weak searches are found out.

As a script it repeats the draws of the slow tests more often: PYTHONPATH=tests python tests/judging.py 100
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from helpers import silent

from rankbench.api.session import Session
from rankbench.core.contract import Floats
from rankbench.data.sources.csv_ratings import OwnRatings
from rankbench.data.views import Ratings
from rankbench.execution import machine
from rankbench.execution.isolation import Caps
from rankbench.execution.worker import Ended, Task, _failure, work
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Range, Tune
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

FACTORS = ("mf", "sgd", "altsvm", "rmc", "smc")
OF_FEATURES = ("frsvm", "imc", "mprank", "ranksvm-joint", "ranksvm-var")
OF_ITEMS = ("popularity", "global")
CHEAP = ("mf", "sgd", "altsvm", "smc")


@dataclass(frozen=True)
class Here:
    """A workplace in this process, which saves the start of one for each of thousands of small cells."""

    places: int = 1
    machine: Machine = field(default_factory=machine.describe)

    def run(self, task: Task, caps: Caps, stop: threading.Event) -> tuple[Ended, Machine]:
        """Run one cell; what it raises is its failure."""
        points: list[Point] = []
        try:
            ended = work(Home(points), task)
        except Exception as error:
            ended = _failure(error)
        return replace(ended, curve=tuple(points), wall=0.1, load=0.0), self.machine


@dataclass(frozen=True)
class Home:
    """Keeps the points of a curve."""

    points: list[Point]

    def send(self, message: Point, /) -> None:
        """Take a point."""
        self.points.append(message)


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
    return _written(rng, path, rng.normal(size=items) + 0.7 * rng.normal(size=(users, items)))


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


def winner(kind: Callable[[np.random.Generator, Path], str], seed: int, folder: Path) -> str:
    """Which solver is first on data of a kind, in the comparison that `on` makes of it, of the cheap solvers."""
    path = folder / f"{kind.__name__}-{seed}.csv"
    name = kind(np.random.default_rng(seed), path)
    asked = (*FACTORS, *(OF_FEATURES if kind is of_features else ()))
    found = studied(folder / "out", experiment_of(choice_for(name, Wishes(asked, repetitions=3, seed=seed))), seed)
    return ranking(found)[0].group.solver.name


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
        cut = Range(range_.high * 0.2, range_.high, "log") if seed % 2 else Range(range_.low / 30, range_.low / 6, "log")
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


def reasons(experiment: Experiment, seed: int, folder: Path) -> tuple[str, ...]:
    """Why the last solver of an experiment is not certified."""
    found = studied(folder, experiment, seed)
    return strengths(found)[key_of(found.groups[-1])]


def in_folder(ask: Callable[[Path], object]) -> object:
    """What a function of a new folder returns."""
    with TemporaryDirectory() as folder:
        return ask(Path(folder))


def main(draws: int, parts: Iterable[str]) -> None:
    """Print how many winners are right, and how many searches are judged rightly."""
    for part in parts:
        print(part)
        if part == "winners":
            for kind, right in FAMILIES.items():
                found = Counter(in_folder(lambda folder, kind=kind, seed=seed: winner(kind, seed, folder)) for seed in range(draws))
                print(f"{kind.__name__}: {sum(found[name] for name in right)} of {draws} {dict(found)}", flush=True)
        if part == "sound":
            flagged = [(solver, seed, why) for solver, seed in dealt(CHEAP, draws)
                       if (why := in_folder(lambda folder: reasons(sound(solver, seed, folder), seed, folder)))]
            print(f"sound searches that are marked: {len(flagged)} of {draws}", *flagged, sep="\n  ", flush=True)
        if part == "crippled":
            missed = Counter()
            for number in range(draws):
                how, solver = WAYS[number % len(WAYS)], CHEAP[number // len(WAYS) % len(CHEAP)]
                if how == "rank 1" and solver == "smc":
                    how = "two steps"
                why = in_folder(lambda folder: reasons(crippled(solver, how, number, folder), number, folder))
                if not why:
                    missed[how, solver] += 1
            print(f"crippled searches that are marked: {draws - sum(missed.values())} of {draws}", dict(missed), flush=True)


def dealt(solvers: tuple[str, ...], draws: int) -> Iterator[tuple[str, int]]:
    """The solvers in turn, with a number for each draw."""
    return ((solvers[number % len(solvers)], number) for number in range(draws))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or ("winners", "sound", "crippled"))
