"""Training and evaluating from Python: `fit`, `split`, `evaluate`, `recommend`, `save`."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rankbench import fitted, metrics
from rankbench.api.progress import Callback, CurvePoint, Progress, step_display
from rankbench.core.contract import DECLARATIONS, Model, OwnMetric, Solver
from rankbench.core.errors import UserError
from rankbench.core.packages import import_needed
from rankbench.core.streams import RNG, seed_of
from rankbench.data import splits
from rankbench.data.splits import Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.execution.training import Checkpoint, trained
from rankbench.experiments import Budget
from rankbench.fitted import Fitted
from rankbench.metrics import Metric
from rankbench.solvers import SOLVERS

if TYPE_CHECKING:
    import pandas

MetricName = str | Metric | OwnMetric


def fit(
    solver: str | Solver,
    train: View | Split,
    *,
    steps: int | None = 20,
    seconds: float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    rng: RNG = None,
    threads: int = 1,
    progress: bool = False,
    callback: Callback | None = None,
) -> Fitted:
    """Train a solver within a budget: `fit("sgd[rank=5]", split)`, or `fit(SGD(rank=5), split.train, steps=50)`.

    Training ends after so many steps or seconds, or when the objective changes by less than the tolerance.

    Parameters
    ----------
    solver : str or Solver
        A name with settings in brackets, or a record.
    train : Ratings, Comparisons or Split
        What to train on; of a split, the training part.
    steps : int, optional
        The most steps; None for no such limit.
    seconds : float, optional
        The most training seconds; a step that has begun is finished.
    tolerance : float, optional
        The relative change of the objective below which training ends.
    seed : int
        Decides all random numbers.
    rng : int or numpy.random.Generator, optional
        Another name of `seed`, which may also be a generator.
    threads : int
        Threads of the solver.
    progress : bool
        Whether to show a bar.
    callback : callable, optional
        Is called with a `Progress` after each step, and ends the training by returning True.

    Returns
    -------
    Fitted
        The model, with the ids of the data.
    """
    solver = solver_of(solver)
    part = train.train_for(solver) if isinstance(train, Split) else view_in("train", train)
    seen = train.seen if isinstance(train, Split) else None
    budget = Budget(steps, seconds, tolerance)
    if callback is not None and not callable(callback):
        raise UserError(f"callback is {_named(callback)}", remedy="pass a function of a Progress: callback=print")
    with ExitStack() as stack:
        told = [callback] if callback is not None else []
        if progress:
            told.append(stack.enter_context(step_display(type(solver).__name__, budget.steps)))
        tell = _listener(told) if told else None
        model = trained(solver, part, budget, seed_of(seed, rng), threads, tell)
    return Fitted.of(model, part, seen, solver)


def _listener(callbacks: Sequence[Callback]) -> Callable[[Checkpoint], bool]:
    """A listener of a training that keeps its curve, and calls every callback after each step."""
    curve: list[CurvePoint] = []

    def tell(checkpoint: Checkpoint) -> bool:
        step = checkpoint.step
        objective = None if step.objective is None else float(step.objective())
        curve.append(CurvePoint(checkpoint.index, checkpoint.seconds, objective))
        now = Progress(step.model, tuple(curve))
        return any([callback(now) is True for callback in callbacks])  # a list, so that each is called

    return tell


def split(
    data: View, protocol: str, *, seed: int = 0, rng: RNG = None, repetition: int = 0, **settings: object
) -> Split:
    """Cut data by a named protocol: `split(data, "n-per-user", n=50, seed=0)`; `rankbench list splits` names them.

    Parameters
    ----------
    data : Ratings or Comparisons
        The rows to cut.
    protocol : str
        The split's name, perhaps with settings in brackets.
    seed : int
        Decides all random numbers.
    rng : int or numpy.random.Generator, optional
        Another name of `seed`, which may also be a generator.
    repetition : int
        Which of several draws to make, counted from 0.
    **settings
        Settings of the split, such as `n=50`.

    Returns
    -------
    Split
        The training part `train` and the held-out part `test`.
    """
    if not isinstance(protocol, str):
        problem = f"the protocol is a {type(protocol).__name__}"
        raise UserError(problem, remedy='pass its name: split(data, "n-per-user", n=50)')
    view = view_in("data", data)
    return splits.split(view, protocol, seed=seed_of(seed, rng), repetition=repetition, **settings)


@overload
def evaluate(model: Model, test: View | Split, names: MetricName, threads: int = 1, train: View | None = None) -> float:
    """One metric: its mean over users."""
    ...


@overload
def evaluate(
    model: Model,
    test: View | Split,
    names: list[Any] | tuple[MetricName, ...],
    threads: int = 1,
    train: View | None = None,
) -> dict[str, float]:
    """Several metrics: their means by their labels."""
    ...


def evaluate(
    model: Model,
    test: View | Split,
    names: MetricName | list[Any] | tuple[MetricName, ...],
    threads: int = 1,
    train: View | None = None,
) -> float | dict[str, float]:
    """The mean of a metric over users, `evaluate(model, split, "ndcg@10")`; of several metrics, a dictionary of means.

    Parameters
    ----------
    model : Model
        What `fit` or `load` returned, or anything with a method `score`.
    test : Split, Ratings or Comparisons
        The held-out part, or the whole split, which also has the training part that some metrics need.
    names : str, metric, or list of them
        Metrics by name, such as "ndcg@10", or as records, your own too.
    threads : int
        Threads that score and evaluate.
    train : Ratings or Comparisons, optional
        The training part, if `test` is not a split and a metric needs it.

    Returns
    -------
    float or dict
        The mean of one metric; of a list, the means by their labels.
    """
    if isinstance(test, Split):
        train = (test.train if test.seen is None else test.seen) if train is None else train
        test = test.test
    if not isinstance(test, Ratings | Comparisons):
        problem = f"the second argument is a {type(test).__name__}"
        raise UserError(problem, remedy='pass a split or its held-out part: evaluate(model, split, "ndcg@10")')
    if not callable(getattr(model, "score", None)):
        remedy = "pass what rankbench.fit or rankbench.load returned"
        raise UserError(f"the model is {_named(model)}", remedy=remedy)
    _check_same_ids(model, test)
    asked: list[Any] = list(names) if isinstance(names, list | tuple) else [names]
    if wrong := next((name for name in asked if isinstance(name, type)), None):
        raise UserError(f"{wrong.__name__} is a class", remedy=f"pass a record: {wrong.__name__}()")
    found = metrics.evaluate(model, test, asked, threads, train)
    return found if isinstance(names, list | tuple) else next(iter(found.values()))


def recommend(model: Fitted | str | Path, users: Any = None, k: int = 10, **options: Any) -> "pandas.DataFrame":
    """The k best items for a user, for several users, or for all: `recommend(model, "alice", k=5)`.

    Parameters
    ----------
    model : Fitted, str or Path
        What `fit` returned, or the file of a model.
    users : id or list of ids, optional
        The data's own ids; all users if none is given.
    k : int
        How many items for each user.
    **options
        Those of `Fitted.recommend`: `items`, `seen`, `threads`.

    Returns
    -------
    pandas.DataFrame
        A row for each recommendation: user, place from 1, item, score.
    """
    found = fitted.load(model) if isinstance(model, str | Path) else model
    if not isinstance(found, Fitted):
        remedy = "pass what rankbench.fit or rankbench.load returned, or the path of a saved model"
        raise UserError(f"a {type(found).__name__} knows no ids and nothing seen", remedy=remedy)
    return found.recommend(users, k, **options)


def save(model: Model, path: str | Path) -> None:
    """Write a model with its ids to an npz file, which `rankbench.load` reads: plain arrays, no pickle.

    Parameters
    ----------
    model : Model
        What `fit` returned, or a model of rankbench.
    path : str or Path
        The file; its name ends in .npz.
    """
    target = Path(path)
    if target.suffix != ".npz":
        raise UserError(f"{path} is no name of a model's file", remedy=f"end it in .npz: {target.name}.npz")
    try:
        fitted.save(model, target)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", remedy="choose another file") from None


def solver_of(solver: str | Solver) -> Solver:
    """The solver of this name, or the given record; anything else is an error that says what to pass."""
    if isinstance(solver, str):
        found: Solver = SOLVERS.resolve(solver).record
    elif isinstance(solver, type):
        raise UserError(f"{solver.__name__} is a class", remedy=f"pass a record of settings: {solver.__name__}()")
    else:
        found = solver
    if absent := [name for name in (*DECLARATIONS, "steps") if getattr(found, name, None) is None]:
        problem = f"a {type(found).__name__} is no solver: it has no {absent[0]}"
        raise UserError(problem, remedy="pass a name such as 'sgd[rank=5]', or a record such as rankbench.SGD(rank=5)")
    import_needed(found, type(found).__name__)
    return found


def view_in(name: str, given: object) -> View:
    """The argument if it is ratings or comparisons, else an error that says how to make them."""
    if isinstance(given, Ratings | Comparisons):
        return given
    if isinstance(given, Split):
        raise UserError(f"{name} is a split", remedy=f"pass one of its parts: {name}=split.train")
    how = f"rankbench.load({given!r})" if isinstance(given, str) else "rankbench.load(table)"
    raise UserError(f"{name} is {_named(given)}", remedy=f"pass ratings or comparisons: {how}")


def _named(given: object) -> str:
    """A wrong argument in words."""
    return repr(given) if isinstance(given, str) else f"a {type(given).__name__}"


def _check_same_ids(model: Model, test: View) -> None:
    """Raise an error if a model and a held-out part have other users or items, so that numbers mean different ones."""
    if not isinstance(model, Fitted):
        return
    for kind, known, asked in (
        ("users", model.user_ids, test.user_ids),
        ("items", model.item_ids, test.item_ids),
    ):
        if known is not None and asked is not None and not np.array_equal(known[: len(asked)], asked):
            problem = f"the model and the held-out part have different {kind}"
            raise UserError(problem, remedy="evaluate on a split of the data that the model was trained on")
