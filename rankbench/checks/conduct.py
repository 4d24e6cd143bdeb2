"""Checks of how a solver behaves as a guest of the harness: imports, budgets, silence, and what it leaves behind."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from rankbench.checks.findings import Finding, failed, passed
from rankbench.checks.material import STEPS, Subject, course
from rankbench.core.amounts import amount
from rankbench.core.blas import one_blas_thread
from rankbench.core.streams import stream
from rankbench.core.system import descendants
from rankbench.execution.training import checkpoints
from rankbench.experiments import Budget


def imports(subject: Subject) -> Finding:
    """Whether a training imports packages, whose loading would count as training time."""
    with one_blas_thread():
        steps = checkpoints(subject.solver.steps(subject.train, stream(0), 1), Budget(steps=STEPS))
        loaded = dict.fromkeys(module for checkpoint in steps for module in checkpoint.imported)
    if loaded:
        seen = f"a training imports {', '.join(loaded)}, which counts as training time"
        return failed("imports", seen, "import at the top of the file, or in `missing`")
    return passed("imports", "none while the clock runs")


def budgets(subject: Subject) -> Finding:
    """Whether a training can be left after any step, without threads or processes that stay behind."""
    name, threads, processes = "budgets", threading.active_count(), set(descendants(os.getpid()))
    with one_blas_thread():
        steps = subject.solver.steps(subject.train, stream(0), 1)
        indices = [checkpoint.index for checkpoint in checkpoints(steps, Budget(steps=1))]
        try:
            close = getattr(steps, "close", None)
            if close:
                close()
        except RuntimeError as error:
            problem = f"a training that is left after a step goes on: {error}"
            return failed(name, problem, "do not catch GeneratorExit: end when the generator is closed")
    if more := set(descendants(os.getpid())) - processes:
        return failed(name, f"{len(more)} processes stay behind", "end them in a `finally` around the `yield`s")
    if (left := threading.active_count() - threads) > 0:
        return failed(name, f"{left} threads stay behind", "end them in a `finally` around the `yield`s")
    return passed(name, f"a training can be left after {amount(len(indices), 'step')}, and nothing stays behind")


def silence(subject: Subject) -> Finding:
    """Whether a training prints nothing."""
    if text := printed_by(lambda: course(subject.solver, subject.train, look=True)):
        return failed("silence", f"a training prints {text!r}", "print nothing: the harness tells the progress")
    return passed("silence", "a training prints nothing")


def printed_by(work: Callable[[], object]) -> str:
    """The beginning of the first line that this work prints; empty if it prints nothing."""
    with _captured() as printed:
        work()
        sys.stdout.flush()
        sys.stderr.flush()
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    return text.strip().partition("\n")[0][:60] or text[:1]


@contextmanager
def _captured() -> Iterator[IO[bytes]]:
    """A context in which everything that this process prints goes to a file, that of compiled code too."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
