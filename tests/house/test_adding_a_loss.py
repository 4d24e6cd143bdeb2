"""A loss of pairs is added to a copy of the sources as CONTRIBUTING says, in two files, and all solvers take it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TAKERS = (
    *("sgd", "bpr", "fm", "convex-erm", "global", "altsvm"),
    *("frsvm", "ranksvm-joint", "ranksvm-nuclear", "ranksvm-separate", "ranksvm-var"),
)
ENDING = "    return NAN  # no loss\n\n\ncdef inline "
BRANCH = "    if loss == HALF_SQUARED_HINGE:\n        return "
IN_KERNELS = (  # what stands in losses.pxd, and what is put before it
    ("    SMOOTH_HINGE\n\n", "    HALF_SQUARED_HINGE\n"),
    ("SMOOTH_HINGE):", "HALF_SQUARED_HINGE, "),
    (f"{ENDING}double slope_of", f"{BRANCH}0.5 * missing * missing\n"),
    (f"{ENDING}Tangent", f"{BRANCH}-max(0.0, missing)\n"),
    (f"{ENDING}Parabola", f"{BRANCH}1.0 if margin < 1.0 else 0.0\n"),
)
NAME = '"half-squared-hinge"'
RECORD = f"""    Loss(
        {NAME},
        Code.HALF_SQUARED_HINGE,
        lambda m: 0.5 * np.square(np.maximum(0.0, 1.0 - m)),
        lambda m: -np.maximum(0.0, 1.0 - m),
        lambda m: np.where(m < 1.0, 1.0, 0.0),
        Dual(1.0, np.inf),
    ),
"""
IN_PYTHON = (
    ('"logistic"]  # curved', f"{NAME}, "),
    ('"logistic", "smooth-hinge"]  # with', f"{NAME}, "),
    ('"logistic", "smooth-hinge", "hinge"]', f"{NAME}, "),
    ('"squared-hinge", "smooth-hinge", "hinge"]', f"{NAME}, "),
    (")\n\nBY_NAME", RECORD),
)


def put_before(path, *changes):
    """Put a text before another one, which stands in the file once."""
    text = path.read_text()
    for there, new in changes:
        assert text.count(there) == 1, there
        text = text.replace(there, new + there)
    path.write_text(text)


@pytest.mark.trust
@pytest.mark.skipif(os.environ.get("RANKBENCH_OFFLINE") == "1", reason="building fetches its requirements")
def test_a_loss_that_is_added_in_two_files_is_taken_by_every_solver_of_pairs(tmp_path):
    copy, target = tmp_path / "copy", tmp_path / "installed"
    ignored = shutil.ignore_patterns(".*", "build", "reports", "docs", "*.so", "__pycache__", "results")
    shutil.copytree(ROOT, copy, ignore=ignored)
    put_before(copy / "pyx" / "shared" / "losses.pxd", *IN_KERNELS)
    put_before(copy / "rankbench" / "methods" / "losses.py", *IN_PYTHON)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(copy)]
    subprocess.run(pip, check=True)
    shutil.rmtree(copy / "rankbench")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(copy / "tests")])}

    def run(*words):
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    run("-c", f"import rankbench; assert rankbench.__file__.startswith({str(target)!r})")
    run("-m", "pytest", "-q", "tests/methods/test_losses.py")
    for solver in TAKERS:
        run("-m", "rankbench", "check", f"{solver}[loss=half-squared-hinge]")
