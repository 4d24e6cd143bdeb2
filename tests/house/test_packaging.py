"""Packages built from this source: an sdist that builds, and a wheel with every kernel and experiment."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KERNELS = {path.relative_to(ROOT / "pyx").with_suffix("").as_posix() for path in (ROOT / "pyx").rglob("*.pyx")}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOW = ROOT / ".github" / "workflows" / "wheels.yml"

offline = pytest.mark.skipif(
    os.environ.get("RANKBENCH_OFFLINE") == "1", reason="RANKBENCH_OFFLINE=1: building fetches its requirements"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of this tree, and the wheel that was built out of it, in half the time as nothing is optimised."""
    folder = tmp_path_factory.mktemp("a folder with blanks")
    compiler = tmp_path_factory.mktemp("compiler") / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n')
    compiler.chmod(0o755)
    installer = ("--installer", "uv" if find_spec("uv") else "pip")
    command = [sys.executable, "-m", "build", *installer, "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"CC": str(compiler)})
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
        if path.suffix in {".py", ".toml", ".json", ".html", ".css", ".js", ".typed"}:
            assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.endswith((".pyx", ".c")) or name.startswith("tests")]


@offline
@pytest.mark.packaging
def test_the_sdist_holds_every_source_and_nothing_made(built):
    names = {name.partition("/")[2] for name in tarfile.open(built[0]).getnames()}
    for folder, pattern in (
        ("pyx", "*.[ph]*"),
        ("rankbench", "*.toml"),
        ("tests", "*.py"),
        ("asv_benchmarks", "*.py"),
    ):
        for path in (ROOT / folder).rglob(pattern):
            if "env" not in path.parts:
                assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.endswith((".so", ".c"))]
    ignored = subprocess.run(["git", "check-ignore", "--stdin"], cwd=ROOT, input="\n".join(names), capture_output=True,
                             text=True, check=False).stdout.splitlines()  # fmt: skip
    assert [name for name in ignored if ".egg-info" not in name] == []


@offline
@pytest.mark.packaging
def test_the_wheel_works_where_there_is_no_compiler(built, tmp_path):
    target, bare = tmp_path / "installed", tmp_path / "bare"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(built[1])]
    subprocess.run(pip, check=True)
    bare.mkdir()
    from_there = f"import rankbench; assert rankbench.__file__.startswith({str(target)!r}), rankbench.__file__"
    run = ["-m", "rankbench", "run", "gunasekar2016-dag", "-q"]
    for words in (["-c", from_there], [str(ROOT / ".ci" / "check_wheel.py")], run):
        environment = {"PYTHONPATH": str(target), "PATH": str(bare), "HOME": str(bare)}
        done = subprocess.run(
            [sys.executable, *words], cwd=bare, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert list(bare.glob("results/gunasekar2016-dag/cells/*.json"))


def test_the_workflow_builds_the_wheels_that_pyproject_names():
    """The workflow's CIBW_BUILD replaces pyproject's `build`."""
    build = PROJECT["tool"]["cibuildwheel"]["build"].split()
    (job,) = [
        job for job in yaml.safe_load(WORKFLOW.read_text())["jobs"].values() if "libc" in str(job.get("strategy"))
    ]
    (asked,) = [step["env"]["CIBW_BUILD"] for step in job["steps"] if "CIBW_BUILD" in step.get("env", {})]
    names = [
        f"cp{version}-{libc}_{arch}"
        for version, libc, arch in product(range(310, 320), job["strategy"]["matrix"]["libc"], ("x86_64", "aarch64"))
    ]
    patterns = [asked.replace("${{ matrix.libc }}", libc) for libc in job["strategy"]["matrix"]["libc"]]
    by_workflow, by_pyproject = (
        {name for name in names if any(fnmatch(name, pattern) for pattern in wanted)} for wanted in (patterns, build)
    )
    assert by_workflow == by_pyproject != set()


def test_the_conda_recipe_says_what_pyproject_says():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    project, needs = PROJECT["project"], recipe["requirements"]
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]
    names = {"matplotlib": "matplotlib-base", "Cython": "cython"}  # with other names in conda-forge
    wanted = {_in_conda(text, names) for text in project["dependencies"]}
    assert set(needs["run"]) == wanted | {f"python {project['requires-python']}"}
    host = {text for text in needs["host"] if isinstance(text, str)}
    assert host == {_in_conda(text, names) for text in PROJECT["build-system"]["requires"]} | {"python", "pip"}


def _in_conda(requirement, names):
    """A requirement of pip as conda writes it."""
    name, _, least = requirement.partition(">=")
    return f"{names.get(name, name)} >={least}"


def test_every_kernel_is_built_and_says_by_what():
    from rankbench.kernels import build_info

    assert build_info.compiler() and build_info.openmp() >= 0
    folder = ROOT / "rankbench" / "kernels"
    built = {path.relative_to(folder).as_posix().partition(".")[0] for path in folder.rglob("*.so")}
    assert built >= KERNELS


def test_the_citation_names_every_paper_whose_experiments_are_run():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    known = {(reference["authors"][0]["family-names"], reference["year"]) for reference in cited}
    titles = {tomllib.loads(path.read_text()).get("paper", "") for path in ROOT.glob("rankbench/experiments/*.toml")}
    papers = [title for title in titles if re.search(r"\((ICML|NIPS|report,) \d{4}\)$", title)]
    assert len(papers) == len(cited) == 5
    for title in papers:
        assert (title.partition(",")[0], int(title[-5:-1])) in known
    bibliography = (ROOT / "paper" / "paper.bib").read_text()
    for family, year in known:
        assert f"{{{family}," in bibliography and f"year = {{{year}}}" in bibliography
