"""How these kernels were built, for the machine's fingerprint."""

from rankbench.kernels.shared.parallel cimport OPENMP_VERSION

cdef extern from *:
    """
    #ifdef RANKBENCH_DEBUG
    #define rankbench_debug 1
    #else
    #define rankbench_debug 0
    #endif
    #ifdef RANKBENCH_NATIVE
    #define rankbench_native 1
    #else
    #define rankbench_native 0
    #endif
    #ifndef __VERSION__
    #define __VERSION__ "unknown"
    #endif
    #if defined(__clang__)
    #define rankbench_compiler "clang " __VERSION__
    #elif defined(__GNUC__)
    #define rankbench_compiler "gcc " __VERSION__
    #else
    #define rankbench_compiler __VERSION__
    #endif
    #define rankbench_digest RANKBENCH_DIGEST /* from setup.py, which reads all kernels */
    #ifdef RANKBENCH_LEVELS /* from setup.py, where the compiler knows the name */
    static int rankbench_processor_has_v3(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("x86-64-v3") != 0;
    }
    #else
    static int rankbench_processor_has_v3(void) { return 0; }
    #endif
    """
    const char *rankbench_compiler
    const char *rankbench_digest
    int rankbench_debug
    int rankbench_native
    int rankbench_processor_has_v3()


def compiler() -> str:
    """The C compiler and its version."""
    return rankbench_compiler.decode()


def digest() -> str:
    """Sixteen hexadecimal digits of what the kernels compute: all their sources, the flags and the compiler."""
    return rankbench_digest.decode()


def openmp() -> int:
    """The OpenMP standard the kernels were compiled for (201511 is 4.5), 0 for none."""
    return OPENMP_VERSION


def debug() -> bool:
    """Whether bounds are checked."""
    return bool(rankbench_debug)


def native() -> bool:
    """Whether the kernels use all instructions of the machine that built them."""
    return bool(rankbench_native)


def processor_has(*, str level) -> bool:
    """Whether this processor and its operating system can run kernels of this level, such as x86-64-v3."""
    return level == "x86-64-v3" and rankbench_processor_has_v3() != 0
