"""The two source trees that are compared: the checkout as it is, and another commit built beside it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from build_wheel import copy_built

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "compare"
CASES = Path(__file__).parent / "cases.py"
ONE_THREAD = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def commit_of(name: str) -> str:
    """The full name of a commit, or the end of the program if there is none."""
    command = ["git", "rev-parse", "--verify", f"{name}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"no commit is called {name!r}: give BASE a branch, a tag or a commit that `git log` shows")
    return done.stdout.strip()


def changed_kernels(commit: str) -> list[str]:
    """The files of kernels that differ between a commit and the checkout."""
    command = ["git", "diff", "--name-only", commit, "--", "pyx"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def built(commit: str, as_here: bool = False) -> Path:
    """The folder of a commit with its kernels, which is kept for the next time; `as_here`: by the checkout's setup.py.

    Then only those kernels are compiled that differ, whatever that commit's own setup.py would do.
    """
    folder = BUILT / f"{commit[:12]}{'-as-here' * as_here}"
    if not (folder / ".built").exists():
        print(f"building the kernels of {commit[:12]}, which may take minutes", file=sys.stderr)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        copy_built(ROOT, ROOT, folder)
        if as_here:
            shutil.copy2(ROOT / "setup.py", folder)
        _build(folder, commit)
        (folder / ".built").touch()
    return folder


def _build(folder: Path, commit: str) -> None:
    """Build the wheel of a source tree, with what its pyproject.toml asks for, and put its kernels into the tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "wheel", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the kernels of {commit[:12]} cannot be built:\n{done.stderr[-2000:]}")
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def said(tree: Path, what: str) -> str:
    """What cases.py prints about this tree if it is asked for this."""
    command = [sys.executable, str(CASES), what]
    return subprocess.run(command, env=environment(tree), capture_output=True, text=True, check=True).stdout


def environment(tree: Path) -> dict[str, str]:
    """The environment of a process that imports the rankbench of this tree, with one thread and fixed hashes."""
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
