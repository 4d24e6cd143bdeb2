"""Limits on threads."""

from rankbench.blas import one_blas_thread as single_threaded_blas

__all__ = ["single_threaded_blas"]
