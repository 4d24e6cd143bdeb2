"""Commands in processes of their own with limits of time and memory, forked from one that has imported everything.

`python limited.py` reads a command as JSON from each line, and answers with its exit code, its outputs, its highest
memory and its seconds.
"""

import io
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import rankbench

ADDRESSES = 4 << 30  # bytes of address space, which threads of BLAS use up without touching it


@dataclass(frozen=True)
class Told:
    """What came of a command."""

    code: int  # negative: the signal that ended it
    shown: str
    told: str
    megabytes: float
    seconds: float


class Limited:
    """A process that runs commands, each in a child with limits."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
        self.outputs = (folder / "shown", folder / "told")
        self.process = subprocess.Popen([sys.executable, __file__, *map(str, self.outputs)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip

    def said(self, *words: object, limit: int = 20) -> Told:
        """What a command says, which has so many seconds of the processor, and six times as many by the clock."""
        self.process.stdin.write(json.dumps([limit, *map(str, words)]) + "\n")
        self.process.stdin.flush()
        code, megabytes, seconds = json.loads(self.process.stdout.readline())
        shown, told = (path.read_text(errors="replace") for path in self.outputs)
        return Told(code, shown, told, megabytes, seconds)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def everything() -> Callable[[], None]:
    """The command line, after all modules are imported and it has once set itself up."""
    for module in pkgutil.walk_packages(rankbench.__path__, "rankbench."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    main = import_module("rankbench.cli").main
    sys.argv = ["rankbench", "list", "no-such-thing"]
    with redirect_stderr(io.StringIO()), suppress(SystemExit):
        main()
    figure = import_module("matplotlib.figure").Figure()
    for form in ("pdf", "png", "svg"):
        figure.savefig(io.BytesIO(), format=form)
    return main


def serve(outputs: list[str]) -> None:
    """Answer each line of the standard input."""
    main = everything()
    for line in sys.stdin:
        limit, *words = json.loads(line)
        start = time.monotonic()
        if not (child := os.fork()):
            _run(main, words, outputs, limit)
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps([code, used.ru_maxrss / 1024, time.monotonic() - start]), flush=True)


def _run(main, words, outputs, limit) -> None:
    """Run a command in this child, which never returns."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    signal.alarm(6 * limit)
    for number, path in zip((1, 2), outputs, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv = ["rankbench", *words]
    code = 70
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1:])
