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
