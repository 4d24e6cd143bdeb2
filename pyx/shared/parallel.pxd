# OpenMP where the compiler had it, one thread where not. The team's size is chosen at run time, and
# kernels are written so that it never changes a bit: threads share nothing that they write to.

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define rankbench_thread_id() omp_get_thread_num()
    #define rankbench_openmp_version (_OPENMP)
    #else
    #define rankbench_thread_id() 0
    #define rankbench_openmp_version 0
    #endif
    """
    int thread_id "rankbench_thread_id" () noexcept nogil
    int OPENMP_VERSION "rankbench_openmp_version"


cdef enum:
    MOST_THREADS = 1024  # beyond it lies no machine that this is for, only memory for each of them


cdef inline int team(int threads) noexcept nogil:
    """How many threads a kernel uses when so many are asked for: at least one, and no more than is sane.

    Every kernel passes its `threads` through here before anything else. Memory for no thread or for less than none
    is memory that the first thread would write beyond.
    """
    return min(max(threads, 1), <int> MOST_THREADS)
