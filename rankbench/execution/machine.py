"""The description of this machine: processor, memory, BLAS, compiler and versions."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
import scipy.linalg.cython_blas  # noqa: F401  loads the BLAS that the kernels call
import threadpoolctl

import rankbench
from rankbench.core.system import cpu_name, usable_cores
from rankbench.kernels import LEVEL, build_info
from rankbench.records.machines import Machine

_PACKAGES = ("rankbench", "numpy", "scipy", "pandas", "matplotlib", "threadpoolctl")


def describe() -> Machine:
    """The machine record: processor, memory, BLAS, OpenMP, compiler, versions and the git commit."""
    return Machine(
        cpu=cpu_name(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        usable_cores=usable_cores(),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        blas=tuple(_blas()),
        compiler=build_info.compiler(),
        openmp=build_info.openmp(),
        native=build_info.native(),
        debug=build_info.debug(),
        packages=tuple((name, _version(name)) for name in _PACKAGES),
        git=_git(),
        kernels=build_info.digest(),
        level=LEVEL,
    )


def _blas() -> list[str]:
    """Every loaded BLAS with its version and the processor family that it detected."""
    blas = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return sorted({f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')})" for pool in blas})


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


@cache
def _git() -> str | None:
    """The git commit of the source tree that this package runs from, or None for an installed copy."""
    folder = Path(rankbench.__file__).parent
    try:
        subprocess.run(
            ["git", "ls-files", "--error-unmatch", "__init__.py"], cwd=folder, capture_output=True, check=True
        )
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=folder, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode().strip()
