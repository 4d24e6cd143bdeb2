"""The two source trees that are compared: the checkout as it is, and another commit built beside it."""

import os
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "compare"


def commit_of(name: str) -> str:
    """The full name of a commit, or the end of the program if there is none."""
    command = ["git", "rev-parse", "--verify", f"{name}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"no commit is called {name!r}: give BASE a branch, a tag or a commit that `git log` shows")
    return done.stdout.strip()


def built(commit: str) -> Path:
    """The folder of a commit with its kernels, which is kept for the next time."""
    folder = BUILT / commit[:12]
    if not (folder / ".built").exists():
        print(f"building the kernels of {commit[:12]}, which takes some minutes", file=sys.stderr)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
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


def environment(tree: Path) -> dict[str, str]:
    """The environment of a process that imports the rankbench of this tree, with one thread and fixed hashes."""
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**os.environ, **one_thread, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
