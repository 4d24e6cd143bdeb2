"""Checks of what a solver does with the data that it is given: every kind that it declares, small data, no writing."""

from dataclasses import replace

import numpy as np

from rankbench.arrays.npz import fingerprint
from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.checks.material import EDGES, Subject, accepted, course, must_score, run, scores
from rankbench.core.amounts import amount
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, View, offer

_REPEAT = "draw every random number from `rng`, and let `objective` and `gap` change nothing"


def trains(subject: Subject) -> Finding:
    """Whether `steps` yields models that have a score for every pair of a user and an item with training data."""
    return scored(subject, subject.train, "trains", "")


def kinds_of_data(subject: Subject) -> Finding:
    """Whether it trains on each kind of data that it declares."""
    name, solver = "kinds of data", subject.solver
    for kind in accepted(solver):
        view = subject.ratings if kind is Ratings else subject.ratings.comparisons()
        found = scored(subject, offer(solver, view), name, f"on {kind.__name__}: ")
        if found.bad:
            return found
    return passed(name, f"trains on {' and on '.join(kind.__name__ for kind in accepted(solver))}")


def features(subject: Subject) -> Finding:
    """Whether it trains without item features, unless it declares that it needs them."""
    name, solver = "features", subject.solver
    if solver.needs_features:
        return not_applicable(name, "declared to need them")
    bare = offer(solver, replace(subject.ratings, item_features=None))
    if course(solver, bare) != course(solver, subject.train):
        return failed(name, "features change the model", "declare needs_features = True")
    return passed(name, "not needed, as declared")


def writing(subject: Subject) -> Finding:
    """Whether the training data is the same after a training."""
    name, train = "writing", subject.train
    before = fingerprint(train)
    with one_blas_thread():
        for _ in run(subject.solver, train):
            pass
    if fingerprint(train) != before:
        return failed(name, "a training changes its training data", "copy what you change: train.values.copy()")
    if open_ := [key for key, value in vars(train).items() if isinstance(value, np.ndarray) and value.flags.writeable]:
        return failed(name, f"a training unlocks {', '.join(open_)} of its training data", "copy what you change")
    return passed(name, "the training data stays as it was")


def edges(subject: Subject) -> Finding:
    """Whether it trains on data without rows, of one user, of one item, of one comparison, and without an order.

    It may refuse data that is too small for its settings, if its error says so to the user.
    """
    trained, refused = [], []
    for name, make in EDGES.items():
        try:
            found = edge(subject, name, make())
        except UserError as error:
            refused.append(f"; refuses {name} data: {error}")
            continue
        if found.bad:
            return found
        trained.append(name)
    return passed("edges", f"trains on {', '.join(trained)} data{''.join(refused)}")


def edge(subject: Subject, name: str, view: Ratings) -> Finding:
    """Whether it trains on one of these small data sets, with one thread and with three, looked at or not."""
    train = offer(subject.solver, view)
    for threads in (1, 3):
        found = scored(subject, train, "edges", f"on {name.replace('-', ' ')} data: ", threads)
        if found.bad:
            return found
    if subject.solver.determinism is not Determinism.RACY:
        plain, seen = (course(subject.solver, train, look=look) for look in (False, True))
        if plain != seen:
            return failed("edges", f"on {name.replace('-', ' ')} data a training does not repeat itself", _REPEAT)
    return found


def scored(subject: Subject, train: View, name: str, where: str, threads: int = 1) -> Finding:
    """Whether each of the first models has a number where user and item are in some comparison, elsewhere also NaN."""
    wanted = must_score(train)
    with one_blas_thread():
        shown = [scores(step.model, train) for step in run(subject.solver, train, threads=threads)]
    if not shown:
        return failed(name, f"{where}`steps` yields nothing", "yield a Step with a model at least once")
    for step, table in enumerate(shown):
        if problem := _wrong(table, train, wanted):
            return failed(name, f"{where}at step {step} {problem[0]}", problem[1])
    rows = "comparisons" if isinstance(train, Comparisons) else "ratings"
    return passed(name, f"{amount(len(shown), 'step')} on {len(train):,} {rows}, with all scores that it must have")


def _wrong(
    table: object, train: View, wanted: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"
) -> tuple[str, str] | None:
    """What is wrong with the scores of all pairs, and the remedy; None if nothing is."""
    size = (train.n_users * train.n_items,)
    if not isinstance(table, np.ndarray) or table.dtype != np.float64 or table.shape != size:
        found = f"{table.dtype}{list(table.shape)}" if isinstance(table, np.ndarray) else f"a {type(table).__name__}"
        return f"`score` returns {found}", f"return a float64 array with one score for each pair, here {size[0]}"
    if np.isinf(table).any():
        return "some scores are infinite", "take a smaller step or a stronger penalty, or scale the data"
    if lost := int((~np.isfinite(table[wanted])).sum()):
        remedy = "a score is NaN only where the user or the item has no training data"
        return f"{lost:,} of {int(wanted.sum()):,} pairs with training data have the score NaN", remedy
    return None
