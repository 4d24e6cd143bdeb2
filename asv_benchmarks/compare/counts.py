"""Counting instructions with callgrind: how many a call executes, the same to 0.1 % each time on any machine.

Only the calls themselves are counted: a small library, compiled here, tells callgrind when they begin and end. Counting
begins once, when everything is prepared: each time valgrind translates the whole program anew, which takes seconds.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trees import CASES

MARKS = """
#include <valgrind/callgrind.h>
void count(void) { CALLGRIND_START_INSTRUMENTATION; }
void start(void) { CALLGRIND_ZERO_STATS; }
void stop(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""
NAME = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.M)
TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.M)


def missing() -> str:
    """What is needed and not installed; empty if nothing is."""
    return "" if shutil.which("valgrind") else "valgrind (on Debian: apt-get install valgrind)"


def counted(environment: Mapping[str, str], names: list[str]) -> dict[str, int]:
    """By case, the instructions of one call in a process with this environment; cases that cannot run are left out."""
    with tempfile.TemporaryDirectory() as folder:
        marks = _compiled(Path(folder))
        callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        command = [*callgrind, sys.executable, str(CASES), "count", str(marks), *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"callgrind ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return dict(found for path in Path(folder).glob("out.*") if (found := parsed(path.read_text())))


def parsed(text: str) -> tuple[str, int] | None:
    """The name and the instructions in a file of callgrind; None for the one of the program's end."""
    name, total = NAME.search(text), TOTAL.search(text)
    return (name[1], int(total[1])) if name and total else None


def _compiled(folder: Path) -> Path:
    source, library = folder / "marks.c", folder / "marks.so"
    source.write_text(MARKS)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library
