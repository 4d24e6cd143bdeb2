"""Folders that cannot be written, clocks that are set back, and several drivers on one folder."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest
from faults.driving import SERIAL, SIDE_BY_SIDE, Place, ended, eventually, killed, shorter

pytestmark = pytest.mark.slow

# ---- a folder that cannot be written ----


@pytest.fixture
def read_only():
    """A function that makes a folder and all in it read-only for everybody, until the test has ended."""
    mounted = []

    def make(path):
        if os.geteuid():
            for folder in (path, *(inner for inner in path.rglob("*") if inner.is_dir())):
                folder.chmod(0o500)
            return
        if subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False).returncode:
            pytest.skip("root may write to every folder here, and may not mount one read-only")
        mounted.append(path)
        subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)

    yield make
    for path in mounted:
        subprocess.run(["umount", path], check=True)


@pytest.mark.trust
def test_a_read_only_folder_is_one_line_and_what_is_in_it_can_be_read(cli, tmp_path, read_only):
    place = Place(tmp_path / "place", shorter(SERIAL))
    assert place.finish("-q")[0] == 0
    before = place.files()
    read_only(place.out)
    for more in ((), ("--rerun", "all")):
        code, said = place.finish("-q", *more)
        assert code == 2 and said.count("\n") == 1
        assert said.startswith(f"rankbench: cannot write to {place.out / 'tiny'}: ")
        assert said.endswith("; choose another folder with --out\n")
    assert "| ok |" in cli("table", "tiny", "--out", place.out).out
    assert place.files() == before


# ---- a clock that is set back ----

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int is_back(void) {
    const char *path = getenv("RANKBENCH_TEST_BACK");
    return path && !access(path, F_OK);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME && is_back()) now->tv_sec -= 86400;
    return code;
}
"""


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """A library that sets the time of day back by a day, for a process that loads it, as soon as a file is there."""
    folder = tmp_path_factory.mktemp("clock")
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    (folder / "clock.c").write_text(CLOCK)
    library = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "clock.c", "-ldl"], check=True)
    back = folder / "back"
    say = [sys.executable, "-c", "import time; print(time.time())"]
    environment = {**os.environ, "LD_PRELOAD": str(library), "RANKBENCH_TEST_BACK": str(folder)}
    early, now = (float(subprocess.check_output(say, env=env)) for env in (environment, os.environ))
    assert now - early > 80000
    return {"LD_PRELOAD": str(library), "RANKBENCH_TEST_BACK": str(back)}, back


@pytest.mark.trust
@pytest.mark.parametrize("kind", [SERIAL, SIDE_BY_SIDE], ids=lambda kind: kind.name)
def test_a_clock_that_is_set_back_in_a_run_changes_nothing(tmp_path, clock, kind):
    environment, back = clock
    back.unlink(missing_ok=True)
    place, other = Place(tmp_path / "place", shorter(kind)), Place(tmp_path / "other", shorter(kind))
    assert other.finish("-q")[0] == 0
    driver = place.start("-q", **environment)
    assert eventually(lambda: len(place.files()) >= 1)
    back.touch()
    code, said = ended(driver)
    assert code == 0, said
    kept = place.files()
    days = {text.decode().partition('"finished": "')[2][:10] for text in kept.values()}
    assert len(days) == 2  # the clock was indeed set back in this run
    assert place.table() == other.table() and set(place.started().values()) == {1}
    assert all(b'"wall": -' not in text and b'"seconds": -' not in text for text in kept.values())
    assert place.finish("-q")[0] == 0
    assert place.files() == kept and set(place.started().values()) == {1}
    assert place.leftovers() == []


# ---- several drivers ----


@pytest.mark.trust
@pytest.mark.parametrize("number", [2, 3])
def test_several_drivers_run_each_cell_once(tmp_path, number):
    place = Place(tmp_path / "place")
    for code, said in [ended(driver) for driver in [place.start("-q") for _ in range(number)]]:
        assert code == 0 and said.count("| 3 | ok |") == 4, said
    assert place.started() == Counter(place.stored().keys()) and len(place.stored()) == 12
    assert place.leftovers() == []


@pytest.mark.trust
def test_of_three_drivers_two_are_killed_and_the_third_finishes_everything(tmp_path):
    place = Place(tmp_path / "place")
    drivers = [place.start("-q") for _ in range(3)]
    assert eventually(lambda: place.started().total() >= 3)
    assert killed(drivers[0], signal.SIGKILL) and killed(drivers[1], signal.SIGTERM)
    code, said = ended(drivers[2])
    assert code == 0 and said.count("| 3 | ok |") == 4, said
    assert len(place.stored()) == 12
    assert place.started().total() <= 12 + 2  # what was under way in a killed driver was run again, and nothing else
    assert place.finish("-q")[0] == 0
    assert place.leftovers() == []
