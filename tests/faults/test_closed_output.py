"""A run whose reader leaves, whose terminal is closed or which has no output at all stores everything all the same."""

import os
import pty
import signal
import subprocess
import sys

import pytest
from faults.driving import PATIENCE, Place, shorter
from faults.driving import SERIAL as LONG

pytestmark = pytest.mark.slow

SERIAL = shorter(LONG)
CELLS = 4


def command(place, *options):
    """The command of a run that shows each cell, and what a process needs for it."""
    words = [sys.executable, "-m", "rankbench", "run", place.toml, "--no-report", "--out", str(place.out), *options]
    return words, {"env": place.environment(), "start_new_session": True}


@pytest.mark.trust
def test_a_run_whose_reader_leaves_goes_on_and_stores_everything(tmp_path):
    place = Place(tmp_path / "place", SERIAL)
    words, process = command(place, "-v")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **process) as driver:
        assert b"1/4 ok" in driver.stdout.readline()
        driver.stdout.close()
        assert driver.stderr.read() == b""
        assert driver.wait(PATIENCE) == 0
    assert len(place.stored()) == CELLS and place.leftovers() == []


@pytest.mark.trust
def test_the_exit_code_of_a_run_without_a_reader_is_that_of_the_run(tmp_path):
    place = Place(tmp_path / "place", SERIAL)
    reading, writing = os.pipe()
    os.close(reading)
    words, process = command(place, "-v")
    process["env"] |= {"RANKBENCH_TEST_BLOW": "if self.mode == 'b': raise ValueError('gone')"}
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False, **process)
    os.close(writing)
    assert done.returncode == 1 and len(place.files()) == CELLS and b"Traceback" not in done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_run_without_an_output_stores_everything(tmp_path, closed):
    place = Place(tmp_path / "place", SERIAL)
    words, process = command(place, "-v")
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
    done = subprocess.run(shell, capture_output=True, check=False, **process)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(place.stored()) == CELLS and place.leftovers() == []


def test_a_run_that_outlives_its_terminal_stores_everything(tmp_path):
    place = Place(tmp_path / "place", SERIAL)
    words, process = command(place)
    try:
        terminal, ours = pty.openpty()
    except OSError as error:  # pragma: no cover: a container without /dev/pts
        pytest.skip(f"no terminal can be opened here: {error}")
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        driver = subprocess.Popen(words, stdin=ours, stdout=ours, stderr=ours, **process)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    os.close(ours)
    assert os.read(terminal, 1)
    os.close(terminal)
    assert driver.wait(2 * PATIENCE) == 0
    assert len(place.stored()) == CELLS and place.leftovers() == []
