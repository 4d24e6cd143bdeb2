"""One thread for BLAS while a kernel runs whose own threads call it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context, or a decorator, in which the BLAS that the kernels call runs on one thread.

    Several threads of a kernel that call a BLAS with threads of its own wait for each other many times longer than they
    compute, and its sums then depend on the number of its threads. It takes ten microseconds; the harness uses
    `single_threaded_blas` around a whole training, which looks for libraries that were loaded in between.
    """
    with _loaded().limit(limits=1, user_api="blas"):
        yield


@cache
def _loaded() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded now; a kernel loads its BLAS when it is imported."""
    return ThreadpoolController()
