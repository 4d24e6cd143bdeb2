"""A driver, or a process that keeps or trains a cell, is killed at a random moment: nothing is lost or left."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from uuid import uuid4

import pytest
from faults.driving import (
    KEEPERS,
    SERIAL,
    SIDE_BY_SIDE,
    TUNING,
    Kind,
    Place,
    ended,
    eventually,
    killed,
    shorter,
)

pytestmark = pytest.mark.slow

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
KINDS = (SERIAL, SIDE_BY_SIDE, TUNING)
MOST = 4  # drivers that are killed on one folder before one is left alone
FEW = 2  # processes below one driver that are killed: a cell that is killed three times is lost


class Attack:
    """Drivers of one kind that are killed, one after the other, until one finishes; then everything is compared."""

    def __init__(self, place: Place, chance: random.Random, usual: float) -> None:
        self.place, self.chance, self.usual = place, chance, usual
        self.interrupted: Counter[int] = Counter()  # how often each cell was under way when its driver was killed
        self.inside = self.kills = 0
        self.slowest = 0.0  # seconds until all processes of a killed driver had ended

    def kill_some(self, most: int) -> None:
        """Kill up to so many drivers; stop when one has finished before its turn came."""
        for _ in range(most):
            before, kept = self.place.started(), self.place.files()
            driver = self.place.start()
            self._wait(driver, before.total())
            if not killed(driver, self.chance.choice(SIGNALS)):
                return
            self._all_gone()
            self.kills += 1
            self._check(before, kept)

    def strike_below(self) -> None:
        """Kill up to so many processes that keep or train the cells of one driver, which then finishes everything."""
        driver = self.place.start("-q")
        for _ in range(FEW):
            time.sleep(self.chance.uniform(0, self.usual / FEW))
            role = self.chance.choice(KEEPERS)
            number = self.chance.choice(SIGNALS) if role == "solver" else signal.SIGKILL
            eventually(lambda role=role: self.place.below(driver)[role] or driver.poll() is not None)
            for pid in self.place.below(driver)[role][:1]:
                self.kills += 1
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        code, said = ended(driver)
        assert code == 0, said
        self._all_gone()

    def _wait(self, driver: "subprocess.Popen[str]", before: int) -> None:
        """Wait for a random moment: some time after a random cell has started, or any time since the start."""
        if self.chance.random() < 0.75:
            number = before + self.chance.randint(1, 4)
            eventually(lambda: self.place.started().total() >= number or driver.poll() is not None)
            time.sleep(self.chance.uniform(0, 0.25))
        else:
            time.sleep(self.chance.uniform(0, self.usual))

    def _all_gone(self) -> None:
        since = time.monotonic()
        assert eventually(lambda: not self.place.processes()), "processes are left"
        self.slowest = max(self.slowest, time.monotonic() - since)

    def _check(self, before: Counter[int], kept: dict[str, bytes]) -> None:
        """Every result is still what it was; the cells that have started but have no result were under way."""
        found = self.place.files()
        assert kept.items() <= found.items(), "a finished cell was lost or run again"
        under_way = set(self.place.started() - before) - set(self.place.stored())
        self.interrupted.update(under_way)
        self.inside += bool(under_way)

    def end(self, undisturbed: Place, below: bool = False) -> None:
        """Let a driver finish, and compare all that is there with an undisturbed run.

        How often a cell whose own processes were killed has started depends on the moment.
        """
        place, kept = self.place, self.place.files()
        code, said = place.finish()
        assert code == 0, said
        assert kept.items() <= place.files().items(), "a finished cell was lost or run again"
        if not below:
            assert place.started() == self.interrupted + Counter(place.stored().keys())
        assert place.table() == undisturbed.table()
        assert place.values() == undisturbed.values()
        assert place.leftovers() == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """For each kind, a run that nobody disturbed, and the seconds that it took."""
    found = {}

    def of(kind: Kind) -> tuple[Place, float]:
        if str(kind) not in found:
            place, since = Place(tmp_path_factory.mktemp("undisturbed"), kind), time.monotonic()
            code, said = place.finish()
            assert code == 0, said
            found[str(kind)] = place, time.monotonic() - since
        return found[str(kind)]

    return of


@pytest.mark.parametrize("kind", [shorter(SIDE_BY_SIDE)], ids=lambda kind: kind.name)  # the others by make trust
def test_a_killed_driver_loses_nothing_and_leaves_nothing(tmp_path, undisturbed, kind):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # shown when the test fails
    other, usual = undisturbed(kind)
    attack = Attack(Place(tmp_path / "place", kind), random.Random(seed), usual)
    attack.kill_some(1)
    attack.end(other)
    assert attack.slowest < 60


@pytest.mark.trust
@pytest.mark.parametrize("kind", [TUNING], ids=lambda kind: kind.name)  # the others by make trust
def test_killed_keepers_and_solvers_change_no_answer(tmp_path, undisturbed, kind):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    other, usual = undisturbed(kind)
    attack = Attack(Place(tmp_path / "place", kind), random.Random(seed), usual)
    attack.strike_below()
    attack.end(other, below=True)


@pytest.mark.trust
def test_a_hundred_kills_of_keepers_and_solvers_change_no_answer(tmp_path, undisturbed):
    seed, kills = random.randrange(2**32), 0
    print(f"seed {seed}")
    chance = random.Random(seed)
    while kills < 100:
        kind = chance.choice(KINDS)
        other, usual = undisturbed(kind)
        attack = Attack(Place(tmp_path / uuid4().hex, kind), chance, usual)
        attack.strike_below()
        attack.end(other, below=True)
        kills += attack.kills
        print(f"{kills} kills")


@pytest.mark.trust
def test_a_hundred_kills_at_random_moments_lose_nothing_and_leave_nothing(tmp_path, undisturbed):
    seed, kills, inside, slowest = random.randrange(2**32), 0, 0, 0.0
    print(f"seed {seed}")
    chance = random.Random(seed)
    while kills < 100:
        kind = chance.choice(KINDS)
        other, usual = undisturbed(kind)
        attack = Attack(Place(tmp_path / uuid4().hex, kind), chance, usual)
        attack.kill_some(min(MOST, 100 - kills))
        attack.end(other)
        kills, inside = kills + attack.kills, inside + attack.inside
        slowest = max(slowest, attack.slowest)
        print(f"{kills} kills, {inside} of them within cells, all processes gone after {slowest:.2f} s at most")
    assert inside >= 60
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert slowest < max(1.0, busy)  # a second, and longer where other processes keep the machine busy
