"""The loops that measure the machine, in C, compiled here with the compiler of the kernels and called by ctypes.

NumPy's own loops come near the limit for a copy only, and as a kernel these loops would be part of every wheel. They
are compiled twice, as the levelled kernels are: for any processor of its kind, and for wider instructions.
"""

import ctypes
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
from work import ROOT

from rankbench.kernels import LEVELS, build_info
from rankbench.kernels.level import BASELINE

LOOPS = """#include <stddef.h>
#include <stdint.h>
#include <math.h>

#ifdef __AVX__
#define LANES 4
#else
#define LANES 2
#endif

typedef double lanes __attribute__((vector_size(8 * LANES), aligned(8)));

/* Read n doubles `times` times, in eight sums of whole registers; n is a multiple of 64. */
double read_all(const double *x, int64_t n, int64_t times) {
    lanes sums[8] = {{0}};
    for (int64_t turn = 0; turn < times; turn++) {
        __asm__ volatile("" ::: "memory"); /* each turn reads again */
        for (int64_t i = 0; i < n; i += 8 * LANES)
            for (int k = 0; k < 8; k++)
                sums[k] += *(const lanes *)(x + i + k * LANES);
    }
    double total = 0.0;
    for (int k = 0; k < 8; k++)
        for (int lane = 0; lane < LANES; lane++)
            total += sums[k][lane];
    return total;
}

/* x = y + scale z for n doubles, `times` times. */
double triad(double *restrict x, const double *restrict y, const double *restrict z, int64_t n, int64_t times) {
    const double scale = 3.0;
    for (int64_t turn = 0; turn < times; turn++) {
        __asm__ volatile("" ::: "memory");
        for (int64_t i = 0; i < n; i++)
            x[i] = y[i] + scale * z[i];
    }
    return x[0];
}

/* 24 operations on whole registers per turn: twelve independent chains of a multiplication and an addition. */
double operate(const double *start, int64_t times) {
    lanes sums[12], factor, term;
    for (int lane = 0; lane < LANES; lane++) {
        factor[lane] = start[0];
        term[lane] = start[1];
    }
    for (int k = 0; k < 12; k++)
        sums[k] = term * (double)(k + 1);
    for (int64_t turn = 0; turn < times; turn++)
        for (int k = 0; k < 12; k++)
            sums[k] = sums[k] * factor + term;
    double total = 0.0;
    for (int k = 0; k < 12; k++)
        for (int lane = 0; lane < LANES; lane++)
            total += sums[k][lane];
    return total;
}
int64_t operations(void) { return 24 * LANES; }

/* Read a number from each of n lines in the given order, `times` times; no read waits for another. */
double gather(const double *x, const int32_t *order, int64_t n, int64_t times) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    for (int64_t turn = 0; turn < times; turn++) {
        __asm__ volatile("" ::: "memory");
        for (int64_t i = 0; i + 3 < n; i += 4) {
            a += x[8 * (int64_t)order[i]];
            b += x[8 * (int64_t)order[i + 1]];
            c += x[8 * (int64_t)order[i + 2]];
            d += x[8 * (int64_t)order[i + 3]];
        }
    }
    return (a + b) + (c + d);
}

/* Exponentials, four of which do not wait for each other. */
double exponentials(const double *start, int64_t times) {
    double x[4], total = 0.0;
    for (int k = 0; k < 4; k++)
        x[k] = start[0] - k;
    for (int64_t turn = 0; turn < times; turn++)
        for (int k = 0; k < 4; k++)
            x[k] = -exp(x[k]);
    for (int k = 0; k < 4; k++)
        total += x[k];
    return total;
}
"""

_ARRAY, _COUNT = np.ctypeslib.ndpointer(flags="C_CONTIGUOUS"), ctypes.c_int64
ARGUMENTS = {
    "read_all": (_ARRAY, _COUNT, _COUNT),
    "triad": (_ARRAY, _ARRAY, _ARRAY, _COUNT, _COUNT),
    "operate": (_ARRAY, _COUNT),
    "gather": (_ARRAY, _ARRAY, _COUNT, _COUNT),
    "exponentials": (_ARRAY, _COUNT),
}


def compiled(folder: Path) -> dict[str, ctypes.CDLL]:
    """The loops for each level of instructions that the kernels are built for and this processor has."""
    build = runpy.run_path(str(ROOT / "setup.py"))
    source, libraries = folder / "loops.c", {}
    source.write_text(LOOPS)
    for level in LEVELS:
        wider = _wider(level)
        library = folder / f"{level}.so"
        flags = ["-O3", "-ffp-contract=off", *wider, "-shared", "-fPIC"]
        command = [*build["compiler"](), *flags, str(source), "-lm", "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the loops that measure the machine cannot be compiled:\n{done.stderr[-2000:]}")
        libraries[level] = _declared(ctypes.CDLL(str(library)))
    return libraries


def _wider(level: str) -> list[str]:
    """The compiler's flags for the instructions of a level, as the kernels have been built for it."""
    if build_info.native():
        return ["-march=native"]
    return [] if level == BASELINE else [f"-march={level}"]


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, arguments in ARGUMENTS.items():
        loop = getattr(library, name)
        loop.argtypes, loop.restype = arguments, ctypes.c_double
    library.operations.restype = _COUNT
    return library
