"""Limits on threads: kernels get the number of threads asked for, and BLAS always gets one.

A BLAS call on several threads may sum in another order; on one thread its bits depend on its input
alone. The kernels do their own parallel work, over blocks whose size does not depend on the number of threads.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """A context in which every BLAS loaded so far runs on one thread."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
