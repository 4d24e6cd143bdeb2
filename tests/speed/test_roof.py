"""The roof of the kernels: its arithmetic, the work that the kernels' files state, and a whole run of tiny size."""

import csv
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "asv_benchmarks" / "roof"
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder, pattern in (("pyx", "*.pyx"), ("rankbench", "*.py"))
    for path in sorted((ROOT / folder).rglob(pattern))
    if "# Roof of " in path.read_text()
]
TINY = 0.01


@pytest.fixture(scope="module")
def roof():
    """The modules of asv_benchmarks/roof that need no data."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in (FOLDER.parent / "peers", FOLDER.parent, FOLDER):
            patch.syspath_prepend(str(folder))
        names = ("work", "machine", "loops", "ready", "shares", "descents", "products", "orders")
        yield SimpleNamespace(**{name: import_module(name) for name in names})


def run(*words):
    command = [sys.executable, str(FOLDER), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# ---- the arithmetic ----


LIMITS = {"bytes": 1e9, "flops": 2e9, "blas": 4e9, "lines": 1e7, "calls": 1e8}


@pytest.mark.parametrize(
    ("amounts", "seconds", "bound"),
    [
        ({"bytes": 3e9, "flops": 2e9}, 3.0, "bytes"),
        ({"bytes": 1e9, "flops": 8e9}, 4.0, "flops"),
        ({"bytes": 1e9, "flops": 2e9, "blas": 4e9, "calls": 1e8}, 3.0, "flops"),  # the same units do all of them
        ({"bytes": 1e9, "flops": 2e9, "lines": 2e7}, 2.0, "lines"),
    ],
)
def test_the_roof_is_the_longest_of_what_a_machine_can_do_side_by_side(roof, amounts, seconds, bound):
    found = roof.work.roof(amounts, LIMITS)
    assert (found.seconds, found.bound) == (pytest.approx(seconds), bound)


def test_the_work_of_several_parts_is_added_up(roof):
    found = roof.work.total([({"bytes": 1, "flops": 2}, 2), ({"flops": 3, "lines": 4}, 1)])
    assert found == {"bytes": 2, "flops": 7, "blas": 0, "lines": 4, "calls": 0}


def a_machine(roof, levels=("baseline",)):
    rates = {("flops", level, ""): 2e9 for level in levels} | {("blas", "", ""): 4e9, ("calls", "", ""): 1e8}
    for level in levels:
        for k, name in PLACES:
            rates |= {("bytes", level, name): 1e9 / k, ("lines", level, name): 1e8 / k}
    return roof.machine.Machine({"L1": 100, "L2": 1000}, rates)


PLACES = ((1, "L1"), (2, "L2"), (4, "memory"))


def test_data_lies_in_the_smallest_cache_that_holds_it(roof):
    machine = a_machine(roof)
    assert [machine.place_of(size) for size in (0, 100, 101, 1000, 1001)] == ["L1", "L1", "L2", "L2", "memory"]


def test_each_kind_of_access_has_the_limits_of_where_its_own_data_lies(roof):
    found = a_machine(roof).limits("baseline", streamed=2000, scattered=500)
    assert found == {"bytes": 0.25e9, "lines": 0.5e8, "flops": 2e9, "blas": 4e9, "calls": 1e8}


def test_a_nearer_place_is_at_least_as_fast_as_one_beyond_it(roof):
    def place(*rates):
        return dict(zip(roof.machine.WHERE, rates, strict=True))

    found = roof.machine.nearer_as_fast({"L1": place(9, 1), "L2": place(5, 4), "memory": place(7, 2)})
    assert found == {"L1": place(9, 4), "L2": place(7, 4), "memory": place(7, 2)}
    assert list(found) == ["L1", "L2", "memory"]


def test_the_limits_are_the_best_that_were_seen(roof):
    one, faster = a_machine(roof), {("bytes", "baseline", "L2"): 2e9, ("lines", "baseline", "L2"): 1e6}
    best = one.best(roof.machine.Machine(one.caches, {**one.rates, **faster}))
    assert best.rates == {**one.rates, ("bytes", "baseline", "L2"): 2e9}


def test_the_caches_are_those_that_the_system_tells(roof, tmp_path):
    told = {
        "index0": ("1", "Data", "48K"),
        "index1": ("1", "Instruction", "32K"),
        "index2": ("2", "Unified", "1M"),
        "index3": ("3", "Unified", "32768K"),
    }
    for folder, values in told.items():
        (tmp_path / folder).mkdir()
        for name, text in zip(("level", "type", "size"), values, strict=True):
            (tmp_path / folder / name).write_text(f"{text}\n")
    assert roof.machine.caches(tmp_path) == {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20}


def test_without_a_word_from_the_system_the_caches_are_usual_ones(roof, tmp_path):
    (tmp_path / "index0").mkdir()  # as in some containers: a folder without its files
    for folder in (tmp_path, tmp_path / "missing"):
        assert roof.machine.caches(folder) == roof.machine.USUAL


def test_the_roof_is_that_of_one_unit(roof):
    work = {"bytes": 4e9, "flops": 2e9}
    ready = SimpleNamespace(work=work, units=4, level="baseline", streamed=50, scattered=0)
    assert roof.shares.roof_of(ready, a_machine(roof)) == roof.work.Roof(1.0, "bytes")


# ---- what the files of the kernels say ----


@pytest.mark.parametrize("path", SOURCES)
def test_every_file_states_positive_work_of_functions_that_it_has(roof, path):
    text = (ROOT / path).read_text()
    for name, formulas in roof.work.formulas(path).items():
        assert re.search(rf"^ *(def|class) {name.split()[0]}\b", text, re.M), name
        asked = set().union(*map(roof.work.names, formulas.values()))
        amounts = roof.work.amounts(formulas, dict.fromkeys(asked, 10.0))
        assert amounts["bytes"] > 0 and amounts["flops"] > 0 and min(amounts.values()) >= 0


def test_a_line_is_read_term_by_term(roof):
    text = '"""A kernel."""\n\n# Roof of times, an entry: 12 bytes; 2 * width flops; width / 8 lines.\n'
    found = roof.work.parsed(text)["times"]
    assert found == {"bytes": "12", "flops": "2 * width", "lines": "width / 8"}
    assert roof.work.amounts(found, {"width": 16}) == {"bytes": 12, "flops": 32, "lines": 2}


@pytest.mark.parametrize(
    "line",
    [
        "# Roof of times: 12 bytes; 2 flops.",
        "# Roof of times, an entry: 2 flops; 12 bytes.",
        "# Roof of times, an entry: 12 bytes; 2 flops; 1 wishes.",
        "# Roof of times, an entry: 12 bytes; 2 flops; 1 lines; 2 lines.",
        "# Roof of times, an entry: 12 bytes; 2 flops",
    ],
)
def test_a_line_of_another_form_is_an_error(roof, line):
    with pytest.raises(ValueError):
        roof.work.parsed(f"{line}\n")


@pytest.mark.parametrize(("formula", "value"), [("2 * rank + 3", 19), ("rank ** 2 / 4", 16), ("log2(rank) - 1", 2)])
def test_a_formula_has_the_value_that_python_gives_it(roof, formula, value):
    assert roof.work.value(formula, {"rank": 8}) == value


@pytest.mark.parametrize(
    ("x", "pools"),
    [
        ([0.0, 2.0, 1.0, 4.0], 1.0),  # in order with more than their margins: every row by itself
        ([3.0, 2.0, 1.0, 0.0], 0.5),  # each user's two rows in a pool
        ([0.0, 2.0, 1.0, 0.0], 0.75),
    ],
)
def test_the_pools_of_a_projection_are_counted(roof, x, pools):
    blocks = roof.ready.Blocks.of(np.array([0, 2, 4]), np.array([1.0, 2.0, 1.0, 2.0]))
    assert roof.ready.pools_of(blocks, np.array(x)) == pools


# ---- what is told ----


def a_line(roof, busy, seconds=3e-9, why=""):
    case = roof.ready.Case("a kernel", "update", lambda share: None, why)
    return roof.shares.Line(case, roof.shares.Taken(busy, busy), roof.work.Roof(seconds, "flops"))


def test_the_share_is_the_roof_over_the_median_time(roof):
    line = a_line(roof, [9e-9, 10e-9, 500e-9])
    assert line.share == pytest.approx(0.3) and not line.weak
    assert roof.shares.cells(line)[2:8] == ("10 ns", "9 ns .. 500 ns", "10 ns", "3 ns", "flops", "30%")


def test_a_kernel_far_from_its_roof_is_marked_with_the_reason(roof):
    far, known = a_line(roof, [20e-9]), a_line(roof, [20e-9], why="it waits")
    assert roof.shares.cells(far)[-2:] == ("WEAK", "to be explained")
    assert roof.shares.cells(known)[-2:] == ("WEAK", "it waits")
    assert roof.shares.cells(a_line(roof, [4e-9], why="it waits"))[-2:] == ("", "")


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (1e-6, "1 us"), (1.234e-8, "12.3 ns"), (5e-11, "0.05 ns")]
)
def test_a_time_is_told_in_the_unit_that_suits_it(roof, seconds, text):
    assert roof.shares.shown(seconds) == text


def test_the_section_has_a_row_per_kernel_and_the_machine(roof):
    text = roof.shares.section([a_line(roof, [4e-9]), a_line(roof, [20e-9])], a_machine(roof))
    rows = [line for line in text.splitlines() if line.startswith("| a kernel |")]
    assert [row.split(" | ")[7] for row in rows] == ["75%", "15%"]
    assert text.startswith("Written by `make roof`.") and "L2 (0 KiB): 0.5 GB/s" in text


# ---- the whole ----


@pytest.mark.trust
def test_every_case_does_work_of_every_kind_that_is_stated(roof):
    """Each case can be made and called, and together they use all lines that the files of kernels have."""
    used = set()
    for case in roof.ready.CASES:
        ready = case.made(TINY)
        assert ready.units > 0 and ready.streamed > 0, case.name
        assert ready.work["bytes"] > 0 and ready.work["flops"] > 0, case.name
        assert roof.shares.roof_of(ready, a_machine(roof, roof.loops.LEVELS)).seconds > 0
        used |= set(ready.counts)
    assert used == {f"{path}: {name}" for path in SOURCES for name in roof.work.formulas(path)}


@pytest.mark.slow
def test_the_machine_is_measured(roof, tmp_path):
    caches = {"L1": 16 << 10, "L2": 64 << 10}
    meter = roof.machine.Meter(roof.loops.compiled(tmp_path), least=1e-4, share=0.01, caches=caches, product=64)
    machine = meter.look()
    assert min(machine.rates.values()) > 0
    kinds = {(kind, level, name) for kind in roof.machine.WHERE for level in roof.loops.LEVELS for name in meter.arenas}
    assert machine.rates.keys() >= kinds and list(meter.arenas) == ["L1", "L2", "memory"]


@pytest.mark.slow
@pytest.mark.parametrize("only", ["kendall|sgd rank|mprank", pytest.param("", marks=pytest.mark.trust)])
def test_a_tiny_run_prints_a_line_for_each_case_and_writes_its_section(roof, tmp_path, only):
    report = tmp_path / "speed.md"
    report.write_text("# Speed\n\n## Peers\n\nFast.\n")
    few = ("--only", only, "--share", str(TINY), "--repeats", "1", "--least", "0.0005")
    done = run(*few, "--csv", "--to", str(report))
    assert done.returncode == 0, done.stderr
    names = [case.name for case in roof.ready.CASES if re.search(only, case.name)]
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert sorted(row["kernel"] for row in rows) == sorted(names)  # the cases stand as their files were imported
    assert all(float(row["share"]) > 0 and float(row["cpu"]) > 0 for row in rows)
    text = report.read_text()
    assert text.startswith("# Speed\n\n## Peers\n\nFast.\n\n## Roof\n") and all(f"| {name} |" in text for name in names)


@pytest.mark.trust
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nonsense"], "no kernel matches --only 'nonsense': there are\nsgd rank 10"),
        (["--only", "("], "--only '(' is no regular expression"),
        (["--share", "2"], "--share 2 is no share"),
        (["--repeats", "0"], "--repeats 0"),
    ],
)
def test_a_wrong_request_is_told_in_a_line(words, said):
    done = run(*words)
    assert done.returncode and said in done.stderr and "Traceback" not in done.stderr
