"""Drivers in processes of their own, a solver that notes each of its trainings, and what is left of both."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from helpers import tiny_toml, with_solver

MARK = "RANKBENCH_TEST_MARK"  # an environment variable by which all processes of a driver are found
LOG = "RANKBENCH_TEST_LOG"  # an environment variable with the file of the solver's notes
BLOW = "RANKBENCH_TEST_BLOW"  # an environment variable with code that the solver runs once it has noted its training
KEEPERS = ("guard", "supervisor", "solver")  # the processes of a cell, each the parent of the next
PATIENCE = 180.0  # seconds that a busy machine may take for what takes a moment
TIMES = {
    "wall",
    "seconds",
    "prepare",
    "load",
    "peak_mb",
    "peaks",
    "finished",
    "contended",
    "machine",
    "sha256",  # of the file, with all these in it
}  # differ between runs

LINES = (  # of a solver: its identity is that of its cell, in the log and in the result
    "import hashlib",
    "from rankbench.arrays.npz import fingerprint",
    "what = repr((self.mode, int(rng.integers(2**50)), fingerprint(train)))",
    "own = int(hashlib.sha256(what.encode()).hexdigest()[:12], 16)",
    f"with open(os.environ[{LOG!r}], 'a') as file:",
    "    file.write(f'{own}\\n')",
    f"exec(os.environ.get({BLOW!r}, ''))",
    "if self.mode == 'b':",  # a child in a session of its own, which holds the solver's pipes
    "    import subprocess",
    "    subprocess.Popen(['sleep', '60'], start_new_session=True, close_fds=False)",
    "time.sleep(0.05 + own % 7 * 0.03)",
    "yield Step(ItemScores(rng.standard_normal(train.n_items)), bound=own)",
)


@dataclass(frozen=True)
class Kind:
    """A kind of run: its arguments on the command line, and what its experiment has beside the tiny one."""

    name: str
    arguments: tuple[str, ...] = ()
    changes: dict[str, str] = field(default_factory=dict)


SERIAL = Kind("serial")
SIDE_BY_SIDE = Kind("side by side", ("-j", "2"))
SPACE = "{{'{solver}' = {{mode = ['a', 'b', 'c', 'd']}}}}"
TUNE = f"{{{{method = 'grid', trials = 4, metric = 'ndcg@5', space = {SPACE}}}}}"
TUNING = Kind("tuning", changes={"solvers": '["{solver}"]', "repetitions": "2", "tune": TUNE})


class Place:
    """A folder with an experiment of about twelve short cells, its results, and its own folder for temporary files."""

    def __init__(self, folder: Path, kind: Kind = SERIAL, out: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.kind, self.out, self.log = folder, kind, out or folder / "out", folder / "log"
        self.mark, self.temporary = uuid4().hex, folder / "temporary"
        self.temporary.mkdir()
        solver = with_solver(folder, *LINES)
        solvers = json.dumps([f"{solver}[mode={mode}]" for mode in "abcd"])
        changes = {name: text.format(solver=solver) for name, text in kind.changes.items()}
        self.toml = tiny_toml(folder, **{"solvers": solvers, "repetitions": "3", "budget": "{steps = 1}", **changes})

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a driver here."""
        return {**os.environ, MARK: self.mark, LOG: str(self.log), "TMPDIR": str(self.temporary), **more}

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """A driver that has just been started."""
        command = [sys.executable, "-m", "rankbench", "run", self.toml, "--no-report", "--out", str(self.out)]
        return subprocess.Popen(
            [*command, *self.kind.arguments, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.environment(**environment),
        )

    def finish(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """The exit code of a driver, and all that it said."""
        return ended(self.start(*arguments, **environment))

    def started(self) -> Counter[int]:
        """How often the training of each cell has started."""
        return Counter(map(int, self.log.read_text().split())) if self.log.exists() else Counter()

    def files(self) -> dict[str, bytes]:
        """All result files, with what they hold."""
        return {path.name: path.read_bytes() for path in sorted(self.out.glob("*/cells/*.json"))}

    def stored(self) -> dict[int, str]:
        """The identities of all cells that have a result, with the names of their files."""
        found = {name: json.loads(text) for name, text in self.files().items()}
        return {int(one["curve"][-1]["bound"]): name for name, one in found.items() if one["status"] == "ok"}

    def table(self) -> dict[str, Any]:
        """Each result without its times and without the place of the solver's file."""
        here = str(self.folder)
        found = {name: text.decode().replace(here, "HERE") for name, text in self.files().items()}
        return {name: without_times(json.loads(text)) for name, text in found.items()}

    def values(self) -> dict[str, bytes]:
        """The files of users' values, with what they hold."""
        return {path.name: path.read_bytes() for path in sorted(self.out.glob("*/cells/*.npz"))}

    def leftovers(self) -> list[Path]:
        """What no run should leave: everything that is not a result, a plan, a manifest or what is known of splits."""
        kept = {"cells", "plans", "manifests", "shown", "known-splits.json"}
        inside = [path for path in self.out.glob("*/*") if path.name not in kept]
        others = [path for path in self.out.glob("*/*/*") if path.suffix not in {".json", ".npz", ".sha256"}]
        return sorted([*inside, *others, *self.temporary.iterdir()])

    def processes(self) -> list[int]:
        """The processes that drivers here have started and that still run."""
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_ours(path)]

    def below(self, driver: "subprocess.Popen[str]") -> dict[str, list[int]]:
        """The processes that keep and train the cells of a driver, by what they are."""
        found: dict[str, list[int]] = {role: [] for role in KEEPERS}
        with suppress(psutil.Error):  # one has just ended
            generation = [psutil.Process(driver.pid)]
            for role in ("server", *KEEPERS):
                generation = [child for process in generation for child in process.children()]
                found[role] = [process.pid for process in generation]
        return found

    def _is_ours(self, path: Path) -> bool:
        try:
            return f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes()
        except OSError:
            return False  # it has just ended, or is somebody else's


def shorter(kind: Kind) -> Kind:
    """The same kind of run with a single repetition."""
    return replace(kind, changes={**kind.changes, "repetitions": "1"})


def without_times(value: Any) -> Any:
    """A stored value without what differs between two runs that compute the same."""
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit code of a driver, and all that it said; it is killed if it takes too long."""
    try:
        said, errors = process.communicate(timeout=2 * PATIENCE)
    finally:
        process.kill()
    return process.returncode, said + errors


def eventually(true: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether something comes true in time."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(true())


def killed(process: "subprocess.Popen[str]", number: signal.Signals) -> bool:
    """Send a signal to a driver alone and wait for its end; returns whether the signal ended it."""
    process.send_signal(number)
    process.wait(PATIENCE)
    process.stdout.close()  # type: ignore[union-attr]
    process.stderr.close()  # type: ignore[union-attr]
    return process.returncode == -number
