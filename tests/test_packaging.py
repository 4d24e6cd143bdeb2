"""Packages built from this source: an sdist that builds, and a wheel with every kernel and experiment."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KERNELS = {path.relative_to(ROOT / "pyx").with_suffix("").as_posix() for path in (ROOT / "pyx").rglob("*.pyx")}

offline = pytest.mark.skipif(
    os.environ.get("RANKBENCH_OFFLINE") == "1", reason="RANKBENCH_OFFLINE=1: building fetches its requirements"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of this tree, and the wheel that was built out of it."""
    folder = tmp_path_factory.mktemp("a folder with blanks")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "performance hint" not in done.stdout + done.stderr
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@offline
@pytest.mark.packaging
def test_the_wheel_holds_every_kernel_its_stub_and_every_experiment(built):
    names = zipfile.ZipFile(built[1]).namelist()
    for kernel in KERNELS:
        assert [name for name in names if name.startswith(f"rankbench/kernels/{kernel}.") and name.endswith(".so")]
        assert f"rankbench/kernels/{kernel}.pyi" in names
    for path in (ROOT / "rankbench" / "kernels" / "levels").rglob("*.so"):
        start = path.relative_to(ROOT).as_posix().partition(".")[0]
        assert [name for name in names if name.startswith(f"{start}.")]
    for path in (ROOT / "rankbench").rglob("*"):
        if path.suffix in {".py", ".toml", ".html", ".css", ".js", ".typed"}:
            assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.endswith((".pyx", ".c")) or name.startswith("tests")]


@offline
@pytest.mark.packaging
def test_the_sdist_holds_every_source_and_nothing_made(built):
    names = {name.partition("/")[2] for name in tarfile.open(built[0]).getnames()}
    for folder, pattern in (
        ("pyx", "*.p[yx]*"),
        ("rankbench", "*.toml"),
        ("tests", "*.py"),
        ("asv_benchmarks", "*.py"),
    ):
        for path in (ROOT / folder).rglob(pattern):
            if "env" not in path.parts:
                assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.endswith((".so", ".c"))]


def test_every_kernel_is_built_and_says_by_what():
    from rankbench.kernels import build_info

    assert build_info.compiler() and build_info.openmp() >= 0
    folder = ROOT / "rankbench" / "kernels"
    built = {path.relative_to(folder).as_posix().partition(".")[0] for path in folder.rglob("*.so")}
    assert built >= KERNELS
