"""Threads, under control: kernels get the number asked for, BLAS always gets one.

A BLAS call that spreads over threads may sum in another order; on one thread its bits depend on its
input alone. Parallelism is the kernels' own, over blocks whose size does not depend on the number.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Every BLAS loaded so far runs on one thread inside this block."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
