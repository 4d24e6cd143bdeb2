# Threads by OpenMP if the compiler supports it, else a single thread. The number of threads is chosen at run time and
# does not change a kernel's bits: threads never write to the same memory.

from rankbench.kernels.shared.checks cimport within

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
    MOST_THREADS = 1024  # a limit on the scratch memory, which grows with the number of threads


cdef inline int team(int threads) except -1:
    """The number of threads that a kernel uses; a ValueError unless it is from 1 to MOST_THREADS.

    Every kernel calls this first, since the scratch memory for less than one thread would be too small.
    """
    within("threads", threads, 1, MOST_THREADS)
    return threads
