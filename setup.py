"""Builds the kernels, pyx/*.pyx, into rankbench/kernels/; all else stands in pyproject.toml.

Environment: RANKBENCH_DEBUG_KERNELS=1 checks every index (with RANKBENCH_SANITIZE=1 also address and
undefined behaviour), RANKBENCH_NATIVE=1 uses all instructions of this machine, with the same bits.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("RANKBENCH_DEBUG_KERNELS") == "1"
SANITIZE = os.environ.get("RANKBENCH_SANITIZE") == "1"
NATIVE = os.environ.get("RANKBENCH_NATIVE") == "1"

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": not DEBUG,
    "embedsignature": True,
}


def works(*flags: str) -> bool:
    """Whether the compiler takes these flags and links a program with them."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("int main(void) { return 0; }\n")
        command = [*os.environ.get("CC", "cc").split(), *flags, str(source), "-o", str(source.with_suffix(""))]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def flags() -> tuple[list[str], list[str], list[tuple[str, str | None]]]:
    """Compiler flags, linker flags and macros. Nothing here may change arithmetic."""
    compile_flags = ["-O1", "-g"] if DEBUG else ["-O3"]
    compile_flags += ["-ffp-contract=off", "-Wno-unused-function", "-Wno-unreachable-code"]
    link_flags: list[str] = []
    macros: list[tuple[str, str | None]] = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
    if works("-fopenmp"):
        compile_flags.append("-fopenmp")
        link_flags.append("-fopenmp")
    if NATIVE:
        compile_flags.append("-march=native")
        macros.append(("RANKBENCH_NATIVE", None))
    if DEBUG:
        macros.append(("RANKBENCH_DEBUG", None))
    if SANITIZE:
        compile_flags.append("-fsanitize=address,undefined")
        link_flags.append("-fsanitize=address,undefined")
    return compile_flags, link_flags, macros


def extensions() -> list[Extension]:
    """One extension module per kernel file."""
    compile_flags, link_flags, macros = flags()
    return [
        Extension(
            f"rankbench.kernels.{path.stem}",
            [path.as_posix()],
            include_dirs=[numpy.get_include()],
            define_macros=macros,
            extra_compile_args=compile_flags,
            extra_link_args=link_flags,
            depends=sorted(shared.as_posix() for shared in Path("pyx").glob("*.pxd")),
        )
        for path in sorted(Path("pyx").glob("*.pyx"))
    ]


building = not {"sdist", "egg_info", "dist_info"}.intersection(sys.argv)  # those need no C
setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["pyx"],
        build_dir="build/debug" if DEBUG else "build/release",
        compiler_directives=DIRECTIVES,
    )
    if building
    else [],
    options={"build_ext": {"parallel": os.cpu_count()}},
)
