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
    """
    const char *rankbench_compiler
    const char *rankbench_digest
    int rankbench_debug
    int rankbench_native


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
