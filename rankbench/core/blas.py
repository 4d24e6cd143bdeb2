"""One thread for BLAS: kernels get the number of threads asked for, and the BLAS that they call gets one.

A BLAS call on several threads may sum in another order; on one thread its bits depend on its input alone. Several
threads of a kernel that call a BLAS with threads of its own also wait for each other many times longer than they
compute. The kernels do their own parallel work, over blocks whose size does not depend on the number of threads.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context, or a decorator, in which every BLAS that is loaded when it begins runs on one thread.

    It takes some ten microseconds, and two milliseconds where modules were imported since the last time.
    """
    with loaded(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def loaded(modules: int) -> ThreadpoolController:
    """The thread pools of the libraries in this process; `modules`, how many are imported, changes when more come."""
    return ThreadpoolController()
