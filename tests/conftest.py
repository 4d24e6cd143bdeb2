"""Settings for all tests: full assertion messages from the inherited solver tests, no hypothesis deadlines.

BLAS has one thread, and threads of kernels sleep while they wait, unless the environment says otherwise: several test
processes on as many cores would wait for each other's threads. The half million objects of the collected tests stay as
long as they run, so that Python's garbage collector, which takes half a second to look at them, need not look at them.

Hypothesis tries 25 examples, 10 with `--brief`, and 300 with `--hypothesis-profile thorough`, as `make trust` runs it.
With `--brief`, as `make quick` runs them, a test with many cases runs the first one.
Of a test with the mark `one_in(n)` the first of every n cases is run, and the others only with the mark `trust`.
"""

import gc
import os
from collections import Counter

import coverage
import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, which the tests do
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the first kernel is imported
pytest.register_assert_rewrite("solvers.contract")
settings.register_profile("rankbench", deadline=None, max_examples=25)
settings.register_profile("brief", deadline=None, max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("rankbench")


gc.disable()  # until the tests are collected


@pytest.fixture
def as_in_the_harness():
    """BLAS has one thread, as in a cell's process."""
    from rankbench.core.blas import one_blas_thread

    with one_blas_thread():
        yield


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The test's own folder, as the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(monkeypatch, capsys):
    """The command line, in this process."""
    from helpers import CommandLine

    return CommandLine(monkeypatch, capsys)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --brief."""
    parser.addoption("--brief", action="store_true", help="run the first case of each test, with ten examples each")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples hypothesis tries."""
    if config.getoption("brief"):
        settings.load_profile("brief")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Mark the cases that are only for `-m trust`, let -m choose, and keep the first case of each test, if so asked."""
    counted: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("one_in"):
            function = item.nodeid.partition("[")[0]
            if counted[function] % mark.args[0]:
                item.add_marker("trust")
            counted[function] += 1
    yield
    if config.getoption("brief"):
        functions: dict[str, pytest.Item] = {}
        for item in items:
            functions.setdefault(item.nodeid.partition("[")[0], item)
        items[:] = functions.values()


def pytest_collection_finish() -> None:
    """Collect garbage again, but not among what there is already."""
    gc.enable()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Save what coverage has measured, if it does: xdist kills a worker that takes long to do so when it exits."""
    if running := coverage.Coverage.current():
        running.save()
