"""Checks that a solver repeats its results as it declares: with the same seed, other threads, and looks in between."""

from itertools import islice, zip_longest

from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.checks.given import scored
from rankbench.checks.material import STEPS, Subject, course, print_of
from rankbench.core.amounts import amount
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism
from rankbench.core.streams import stream

_DRAW = "draw every random number from `rng`, and never depend on times, on `id` or on the order of a set"


def same_seed(subject: Subject) -> Finding:
    """Whether the same seed gives the same bytes again."""
    name, solver = "same seed", subject.solver
    if solver.determinism is Determinism.RACY:
        return not_applicable(name, "declared racy: it repeats nothing")
    first = course(solver, subject.train)
    if (step := _first_difference(first, course(solver, subject.train))) is not None:
        return failed(name, f"the same seed gives another model at step {step}", _DRAW)
    return passed(name, f"the same bytes in {amount(len(first), 'step')}")


def threads(subject: Subject) -> Finding:
    """Whether other numbers of threads change no more than declared."""
    name, solver = "threads", subject.solver
    if solver.determinism is Determinism.RACY:
        found = (scored(subject, subject.train, name, f"with {number} threads ", number) for number in subject.threads)
        return next((one for one in found if one.bad), passed(name, "declared racy: all scores that it must have"))
    exact = solver.determinism is Determinism.EXACT
    one = course(solver, subject.train, 1)
    for number in subject.threads:
        expected = one if exact else course(solver, subject.train, number)
        if (step := _first_difference(expected, course(solver, subject.train, number))) is not None:
            problem = f"with {number} threads step {step} is another model than " + ("with one" if exact else "before")
            remedy = "declare Determinism.FIXED_THREADS, or add up in an order that threads do not change"
            return failed(name, problem, remedy if exact else "declare Determinism.RACY, or let threads share nothing")
    numbers = ", ".join(map(str, subject.threads))
    return passed(name, f"the same bytes {'with' if exact else 'twice with'} {numbers} threads")


def looking(subject: Subject) -> Finding:
    """Whether evaluating a model between two steps leaves the training as it was."""
    name, solver = "looking", subject.solver
    if solver.determinism is Determinism.RACY:
        return not_applicable(name, "declared racy: it repeats nothing")
    plain = course(solver, subject.train)
    if (step := _first_difference(plain, course(solver, subject.train, look=True))) is not None:
        problem = f"asking for objective and gap changes step {step}"
        return failed(name, problem, "let `objective` and `gap` compute from copies, and draw nothing from `rng`")
    return passed(name, "asking for scores, objective and gap changes nothing")


def side_by_side(subject: Subject) -> Finding:
    """Whether two trainings that run in turns give what each gives alone."""
    name, solver, train = "side by side", subject.solver, subject.train
    if solver.determinism is Determinism.RACY:
        return not_applicable(name, "declared racy: it repeats nothing")
    with one_blas_thread():
        runs = [islice(solver.steps(train, stream(seed)), STEPS) for seed in (0, 1)]
        pairs = [[print_of(step.model, train) if step else "" for step in pair] for pair in zip_longest(*runs)]
    for seed in (0, 1):
        together = [pair[seed] for pair in pairs if pair[seed]]
        if _first_difference(course(solver, train, seed=seed), together) is not None:
            problem = "two trainings in turns give other models than each alone"
            return failed(
                name, problem, "keep everything of a training in local variables of `steps`, nothing in globals"
            )
    return passed(name, "two trainings in turns do not meet")


def _first_difference(one: list[str], other: list[str]) -> int | None:
    """The first step at which two courses differ, counted from 0, or None."""
    return next((step for step, pair in enumerate(zip_longest(one, other)) if pair[0] != pair[1]), None)
