"""Builds the kernels, pyx/ROOM/*.pyx, into rankbench/kernels/ROOM/; all else stands in pyproject.toml.

Environment: RANKBENCH_DEBUG_KERNELS=1 checks every index (with RANKBENCH_SANITIZE=1 also address and
undefined behaviour), RANKBENCH_NATIVE=1 uses all instructions of this machine, with the same bits, and
RANKBENCH_TRACE=1 reports every line that runs to coverage (see `make kernel-coverage`), which is slow.

What Cython would put into every module, above all memory views, is built once, as rankbench/kernels/cython_runtime,
which halves the C code. Kernels in LEVELLED are built once more for each level of LEVELS, into
rankbench/kernels/levels/LEVEL/ROOM/; rankbench/kernels/level.py chooses among them when they are imported.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what only building needs is imported where it is used: a test loads this file without it
    from setuptools import Extension
    from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("RANKBENCH_DEBUG_KERNELS") == "1"
SANITIZE = os.environ.get("RANKBENCH_SANITIZE") == "1"
NATIVE = os.environ.get("RANKBENCH_NATIVE") == "1"
TRACE = os.environ.get("RANKBENCH_TRACE") == "1"

# Instruction sets beyond what every x86-64 processor has. The kernels' sums have four lanes of doubles, which fill the
# registers of x86-64-v3. With x86-64-v4 the kernels are as fast if told to use such registers too, else slower.
LEVELS = ("x86-64-v3",)
LEVELLED = (  # the kernels that gain from them: `asv_benchmarks/peers levels` measures solvers, `make roof` the rest
    "methods/all_pairs",
    "methods/als",
    "methods/entries",
    "methods/fold_in",
    "methods/isotonic",
    "methods/margins",
    "methods/ranksvm",
    "metrics/catalogue",
    "metrics/evaluation",
    "models/item_weights",
    "models/scoring",
    "solvers/altsvm",
    "solvers/cofirank",
    "solvers/ease",
    "solvers/frsvm",
    "solvers/global_ranking",
    "solvers/mprank",
    "solvers/rankboost",
    "solvers/robirank",
    "solvers/sgd",
    "solvers/slim",
    "solvers/sqlrank",
    "solvers/svrank",
)

CIMPORTED = re.compile(r"^from rankbench\.kernels\.([\w.]+) cimport", re.M)
RUNTIME = "rankbench.kernels.cython_runtime"
ALIGNED = "pyx/shared/aligned.h"

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": not DEBUG,
    "embedsignature": True,
    "annotation_typing": False,  # annotations are for the stubs; C types are declared
    "allow_none_for_extension_args": False,  # None in place of rows is a TypeError at the door
    **({"linetrace": True} if TRACE else {}),
}


def compiler() -> list[str]:
    """The command of the C compiler that builds the kernels."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def compiler_version() -> str:
    """The first line of what the compiler says of its version; empty where it says nothing."""
    try:
        done = subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]


def works(*flags: str, returning: str = "0") -> bool:
    """Whether the compiler takes these flags and links a program that returns this expression."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(f"int main(void) {{ return {returning}; }}\n")
        command = [*compiler(), *flags, str(source), "-o", str(source.with_suffix(""))]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def flags() -> tuple[list[str], list[str], list[tuple[str, str | None]]]:
    """Compiler flags, linker flags and macros. Nothing here may change arithmetic."""
    compile_flags = ["-O1", "-g"] if DEBUG or TRACE else ["-O3"]
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
    if TRACE:
        macros += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
        macros.append(("CYTHON_USE_SYS_MONITORING", "0"))  # coverage's plugins do not follow what that reports
    if SANITIZE:
        compile_flags.append("-fsanitize=address,undefined")
        link_flags.append("-fsanitize=address,undefined")
    return compile_flags, link_flags, macros


def symbols() -> list[str]:
    """The flag that leaves out what only a debugger reads: a quarter of the time, and a wheel of 3 MB instead of 23."""
    return [] if DEBUG or TRACE else ["-g0"]


def levels() -> tuple[str, ...]:
    """The levels to build: all whose name the compiler knows, in flags and when it asks the processor; often all."""
    if DEBUG or TRACE or NATIVE:
        return ()
    return tuple(level for level in LEVELS if works(f"-march={level}", returning=f'!__builtin_cpu_supports("{level}")'))


def recipe() -> dict[str, Any]:
    """All that decides, beside their source, what the kernels compute."""
    import Cython

    compile_flags, link_flags, macros = flags()
    given = [word for name in ("CFLAGS", "CPPFLAGS") for word in os.environ.get(name, "").split()]
    return {
        "directives": DIRECTIVES,
        "compile flags": compile_flags,
        "link flags": link_flags,
        "macros": macros,
        "environment": [word for word in given if "/" not in word],  # where a folder lies decides nothing
        "cython": Cython.__version__,
        "compiler": compiler_version(),
    }


def files_of(folder: Path) -> list[Path]:
    """All files that kernels are made of."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".pyx", ".pxd", ".h"})


def digest(folder: Path, recipe: Mapping[str, Any]) -> str:
    """Sixteen digits that are equal where kernels compute the same: of their sources and of how they are built."""
    found = hashlib.sha256()
    for path in files_of(folder):
        if path.stem != "build_info":  # it tells the digest and computes nothing
            content = path.read_bytes()
            found.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    found.update(json.dumps(recipe, sort_keys=True).encode())
    return found.hexdigest()[:16]


def written(name: str, text: str) -> str:
    """The path of a file in build/ with this text, which is newer than the kernels if the text was another one."""
    path = Path("build", name)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path.as_posix()


def module_of(path: Path) -> str:
    """The name under which a kernel file is imported: pyx/solvers/sgd.pyx is rankbench.kernels.solvers.sgd."""
    return ".".join(["rankbench", "kernels", *path.relative_to("pyx").with_suffix("").parts])


def include_folder() -> str:
    """A folder in which `from rankbench.kernels.shared.lanes cimport dot` finds pyx/shared/lanes.pxd."""
    link = Path("build", "cimports", "rankbench", "kernels")
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(os.path.relpath("pyx", link.parent), target_is_directory=True)
    return str(link.parent.parent)


def extensions(recipe: Mapping[str, Any]) -> "list[Extension]":
    """One extension module per kernel file."""
    import numpy
    from setuptools import Extension

    sources = sorted(Path("pyx").rglob("*.pyx"))
    recipe_file = written("recipe.json", json.dumps(recipe, indent=1))
    built = [
        Extension(
            module_of(path),
            [path.as_posix()],
            include_dirs=[numpy.get_include()],
            define_macros=list(recipe["macros"]),
            extra_compile_args=[*recipe["compile flags"], *symbols()],
            extra_link_args=recipe["link flags"],
            depends=[recipe_file],  # not what it includes: if that changes, its C code is written anew
        )
        for path in sources
    ]
    (teller,) = (extension for extension in built if extension.name.endswith(".build_info"))
    made = digest(Path("pyx"), recipe)
    teller.define_macros.append(("RANKBENCH_DIGEST", f'"{made}"'))
    teller.depends = [recipe_file, written("digest", made)]  # a change of any kernel changes the digest
    if levels() == LEVELS:
        teller.define_macros.append(("RANKBENCH_LEVELS", None))
    return built


def runtime(kernel: "Extension") -> "Extension":
    """The module of what all kernels share of Cython's own code, built as they are; cythonize writes its source."""
    found = copy(kernel)
    found.name, found.sources, found.depends = RUNTIME, ["cython_runtime.c"], [*kernel.depends, ALIGNED]
    found.extra_compile_args = [*kernel.extra_compile_args, "-include", ALIGNED]
    return found


def at_levels(built: "list[Extension]") -> "list[Extension]":
    """The kernels of LEVELLED, whose C code is made already, once more for each level."""
    by_name = {kernel.name: kernel for kernel in built}
    levelled = [by_name[module_of(Path("pyx", f"{name}.pyx"))] for name in LEVELLED]
    return [at_level(kernel, level) for level in levels() for kernel in levelled]


def at_level(kernel: "Extension", level: str) -> "Extension":
    """A kernel for one level; its C code is copied, since the compiler names its output after it."""
    room, name = kernel.name.split(".")[-2:]
    source = Path("build", "levels", level, room, f"{name}.c")
    for folder in (source.parent, Path("rankbench", "kernels", "levels", level, room)):  # for building in place
        folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(kernel.sources[0], source)
    found = copy(kernel)
    found.name = f"rankbench.kernels.levels.{level}.{room}.{name}"
    found.sources = [source.as_posix()]
    found.extra_compile_args = [*kernel.extra_compile_args, f"-march={level}"]
    return found


def build_folder() -> str | None:
    """Where the C code goes; None, beside the kernels, for tracing, since Cython's coverage plugin looks there."""
    return None if TRACE else "build/debug" if DEBUG else "build/release"


def c_code(path: Path) -> Path:
    """Where Cython writes the C code of a kernel file."""
    return Path(build_folder() or "", path.with_suffix(".c"))


def included(path: Path) -> list[Path]:
    """A kernel file with the .pxd files that it includes, and those that these include."""
    found, left = set(), [path]
    while left:
        one = left.pop()
        if one not in found and one.exists():
            found.add(one)
            names = CIMPORTED.findall(one.read_text(encoding="utf-8"))
            left += [one.with_suffix(".pxd"), *(Path("pyx", *name.split(".")).with_suffix(".pxd") for name in names)]
    return sorted(found)


def made_of(path: Path, recipe: Mapping[str, Any]) -> str:
    """A digest of all that decides the C code of a kernel file; times do not count: every pip unpacks NumPy anew."""
    import numpy

    found = hashlib.sha256(json.dumps([recipe, numpy.__version__], sort_keys=True).encode())
    for one in included(path):
        found.update(f"{one.as_posix()} {hashlib.sha256(one.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def translated(kernels: "list[Extension]", recipe: Mapping[str, Any]) -> "list[Extension]":
    """The kernels with C code in place of their source; Cython writes only what is not there or was made of others."""
    from Cython.Build import cythonize

    fresh, stale, notes = [], [], {}
    for kernel in kernels:
        source = Path(kernel.sources[0])
        code, digest = c_code(source), made_of(source, recipe)
        note = code.with_suffix(".made_of")
        if code.exists() and note.exists() and note.read_text() == digest:
            kernel.sources = [code.as_posix()]
            fresh.append(kernel)
        else:
            stale.append(kernel)
            notes[note] = digest
    made = cythonize(
        stale,
        nthreads=os.cpu_count(),
        force=True,
        shared_utility_qualified_name=RUNTIME,
        include_path=[include_folder()],
        build_dir=build_folder(),
        compiler_directives=DIRECTIVES,
    )
    for note, digest in notes.items():
        note.write_text(digest)
    return fresh + made


def builder() -> "type[build_ext]":
    """What builds kernels: one that lies in the source tree already, and is newer than its C code, is taken as it is.

    setuptools itself looks into a folder that is a new one each time pip installs the package in place.
    """
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def finalize_options(self) -> None:
            super().finalize_options()
            self.parallel = self.parallel or os.cpu_count()  # an option of setup() is lost where pip builds in place

        def build_extension(self, ext: "Extension") -> None:
            here, wanted = Path(self.get_ext_filename(ext.name)), Path(self.get_ext_fullpath(ext.name))
            newest = max(Path(name).stat().st_mtime for name in [*ext.sources, *ext.depends])
            if here.exists() and here.stat().st_mtime >= newest:
                wanted.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here, wanted)
            else:
                super().build_extension(ext)

    return Build


def main() -> None:
    """Build what the command line, or pip, asks for."""
    from setuptools import setup

    kernels: list[Extension] = []
    commands: dict[str, type[build_ext]] = {}
    if not {"sdist", "egg_info", "dist_info"}.intersection(sys.argv):  # those need no C
        given = recipe()
        asked = extensions(given)
        kernels = translated([*asked, runtime(asked[0])], given)
        kernels += at_levels(kernels)
        commands["build_ext"] = builder()
    kernels.sort(key=lambda kernel: Path(kernel.sources[0]).stat().st_size, reverse=True)  # so that none is last alone
    setup(ext_modules=kernels, cmdclass=commands)


if __name__ == "__main__":  # so it is for pip too; a test loads this file and builds nothing
    main()
