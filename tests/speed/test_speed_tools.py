"""The programs of asv_benchmarks/ that compare commits: what they make of numbers that are given here."""

import gc
import io
import os
import sys
import tarfile
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

TOOLS = Path(__file__).parents[2] / "asv_benchmarks"


@pytest.fixture
def tool(monkeypatch):
    """A function that imports a module of asv_benchmarks/compare or asv_benchmarks, as its programs do."""
    for folder in (TOOLS, TOOLS / "compare"):
        monkeypatch.syspath_prepend(str(folder))
    known = set(sys.modules)
    yield __import__
    for name in set(sys.modules) - known:
        if str(TOOLS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_file_of_callgrind_has_a_name_and_a_total(tool):
    text = "desc: Trigger: Client Request: SGD.time_pass(10)\nevents: Ir\nsummary: 12345\ntotals: 12345\n"
    counts = tool("counts")
    assert counts.parsed(text) == ("SGD.time_pass(10)", 12345)
    assert counts.parsed("desc: Trigger: Program termination\ntotals: 3\n") is None


def test_callgrind_runs_in_the_environment_that_says_which_tree_is_measured(tool, monkeypatch):
    program, asked = tool("counts"), []

    def run(command, env, **how):
        asked.append((env, command[-1]))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(program.subprocess, "run", run)
    monkeypatch.setattr(program, "_compiled", lambda folder: folder / "marks.so")
    assert program.counted({"PYTHONPATH": "/tree"}, ["one"]) == {}
    assert asked == [({"PYTHONPATH": "/tree"}, "one")]


def test_no_garbage_is_collected_while_instructions_are_counted(tool, monkeypatch):
    """A collection in one call looked at all objects of the process, and the case took 12 % more instructions."""
    program, told = tool("cases"), []

    class Library:
        def count(self):
            told.append("count")

        def start(self):
            told.append(gc.isenabled())

        def stop(self, name):
            told.append(name)

    monkeypatch.setattr(program.ctypes, "CDLL", lambda path: Library())
    monkeypatch.setattr(program, "cases", lambda: {"one": SimpleNamespace(prepared=lambda: lambda: None)})
    program.count_cases("marks.so", ["one"])
    assert told == ["count", False, b"one"] and gc.isenabled()


def test_three_per_cent_more_instructions_are_slower_and_fewer_are_faster(tool):
    main = _compare_program(tool)
    found = main.by_count({"a": 100, "b": 100, "c": 100, "gone": 5}, {"a": 103, "b": 102, "c": 90, "new": 7})
    assert found == {"a": 1.03, "c": 0.9}
    assert main.told(found, "instructions", 3) == (
        [
            "SLOWER   1.03 x the instructions  a",
            "faster   0.90 x the instructions  c",
            "1 of 3 cases take the same instructions as before",
        ],
        True,
    )


def test_cpu_time_is_slower_only_if_most_turns_are(tool):
    main = _compare_program(tool)
    often, rarely, shorter = [1.2] * 12 + [1.0] * 3, [1.3] * 3 + [1.0] * 12, [0.8] * 15
    assert main.by_time({"often": often, "rarely": rarely, "shorter": shorter}) == {"often": 1.2, "shorter": 0.8}


def _compare_program(tool):
    """The module of `python asv_benchmarks/compare`."""
    tool("counts")  # the program's neighbours are imported by their plain names
    spec = spec_from_file_location("compare_program", TOOLS / "compare" / "__main__.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_section_of_a_page_is_added_and_then_replaced_and_the_others_are_kept(tool, tmp_path):
    with_section, page = tool("pages").with_section, tmp_path / "speed.md"
    assert with_section(page, "Roof", "First.") == f"{tool('pages').HEADS['speed.md']}\n## Roof\n\nFirst.\n"
    others = "# Speed\n\n## Growth\n\nSlow.\n\n## Peers\n\nFast \\1.\n"
    page.write_text(others)
    page.write_text(with_section(page, "Roof", "First."))
    assert page.read_text() == f"{others}\n## Roof\n\nFirst.\n"
    assert with_section(page, "Roof", "Second \\1.\n") == f"{others}\n## Roof\n\nSecond \\1.\n"
    page.write_text(others.replace("## Peers", "## Roof\n\nFirst.\n\n### Part\n\n## Peers"))
    assert with_section(page, "Roof", "Second.") == others.replace("## Peers", "## Roof\n\nSecond.\n\n## Peers")


PAGE = (
    '<script src="https://code.jquery.com/jquery-3.3.1.min.js" integrity="sha256-x" onerror="f()"></script>\n'
    '<script src="asv.js"></script>\n'
    '<link rel="stylesheet" href="https://cdn.jsdelivr.net/npm/bootstrap@3.1.1/dist/css/bootstrap.min.css">\n'
    '<a href="https://github.com/airspeed-velocity/asv/">asv</a>\n'
)


def registry(packages):
    """A registry with these packages, by address; each has the files of these names, which contain them."""

    def opened(address, timeout):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as file:
            for name in packages[address.rpartition("/")[2]]:
                about = tarfile.TarInfo(f"package/{name}")
                about.size = len(name)
                file.addfile(about, io.BytesIO(name.encode()))
        return io.BytesIO(archive.getvalue())

    return opened


def test_a_published_page_loads_what_lies_beside_it(tool, monkeypatch, tmp_path):
    offline = tool("offline")
    known = {f"{one.name}-{one.version}.tgz": list(one.files.values()) for one in offline.PACKAGES}
    monkeypatch.setattr(offline, "urlopen", registry(known))
    monkeypatch.setattr(offline.base64, "b64encode", lambda digest: b"the one")
    monkeypatch.setattr(offline, "PACKAGES", [replace(one, digest="the one") for one in offline.PACKAGES])
    (tmp_path / "index.html").write_text(PAGE)
    offline.main(tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert offline.loaded(page) == {} and '<script src="asv.js"></script>' in page and "github.com" in page
    assert '<script src="vendor/jquery-3.3.1.min.js" onerror="js_load_failure()"></script>' in page
    assert '<link rel="stylesheet" href="vendor/bootstrap.min.css">' in page
    assert (tmp_path / "vendor" / "jquery-3.3.1.min.js").read_text() == "dist/jquery.min.js"
    assert not (tmp_path / "vendor" / "md5.min.js").exists()  # nothing has asked for it


def test_another_package_than_the_expected_one_is_refused(tool, monkeypatch, tmp_path):
    offline = tool("offline")
    monkeypatch.setattr(offline, "urlopen", registry({"jquery-3.3.1.tgz": ["dist/jquery.min.js"]}))
    (tmp_path / "index.html").write_text(PAGE)
    with pytest.raises(SystemExit, match=r"jquery-3\.3\.1\.tgz is not the package that was expected"):
        offline.main(tmp_path)
    assert (tmp_path / "index.html").read_text() == PAGE


def test_a_script_that_nobody_knows_is_named(tool, tmp_path):
    (tmp_path / "index.html").write_text(PAGE.replace("jquery-3.3.1", "jquery-4.0.0"))
    with pytest.raises(SystemExit, match=r"loads https://code\.jquery\.com/jquery-4\.0\.0\.min\.js: add its package"):
        tool("offline").main(tmp_path)


def test_a_registry_that_does_not_answer_is_one_line(tool, monkeypatch, tmp_path):
    offline = tool("offline")

    def silent(address, timeout):
        raise OSError("no route")

    monkeypatch.setattr(offline, "urlopen", silent)
    (tmp_path / "index.html").write_text(PAGE)
    with pytest.raises(SystemExit, match=r"jquery-3\.3\.1\.tgz cannot be read: no route"):
        offline.main(tmp_path)


def test_what_was_built_of_a_tree_is_there_for_another_with_its_times(tool, tmp_path):
    tree, kept, other = (tmp_path / name for name in ("tree", "kept", "other"))
    code, recipe = "build/release/pyx/solvers/sgd.c", "build/recipe.json"
    for name in (code, recipe, "build/lib.linux/rankbench/kernels/sgd.so", "build/temp.linux/sgd.o", "setup.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("made")
        os.utime(tree / name, (1e9, 1e9))
    copy_built = tool("build_wheel").copy_built
    copy_built(kept, kept, tree)  # nothing is kept at first
    copy_built(tree, tree / "build" / "lib.linux", kept)
    copy_built(kept, kept, other)
    found = {path.relative_to(other).as_posix(): path for path in other.rglob("*") if path.is_file()}
    assert set(found) == {code, recipe, "rankbench/kernels/sgd.so"}
    assert all(path.read_text() == "made" and path.stat().st_mtime == 1e9 for path in found.values())
