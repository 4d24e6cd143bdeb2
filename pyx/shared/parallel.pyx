"""The threads of OpenMP, which wait for the next kernel; a process that is forked does not have those of its parent."""

cdef extern from *:
    """
    #if defined(_OPENMP) && defined(__GNUC__) && !defined(__clang__)  /* other runtimes see to it themselves */
    #define rankbench_end_threads() ((void) omp_pause_resource_all(omp_pause_soft))
    #else
    #define rankbench_end_threads() ((void) 0)
    #endif
    """
    void _end_threads "rankbench_end_threads" () noexcept nogil


def end_threads() -> None:
    """End the threads that wait for this thread's next kernel, which starts new ones.

    A forked process has only the thread that forked: a kernel there would wait for the others for ever.
    """
    _end_threads()
