"""Our speed against other libraries', side by side in one process: `python asv_benchmarks/peers [TOPIC...]`.

Needs the extra `peers`. Baseline and ours take turns, so that a busy machine slows both; every number is
a median with its least and its most, and a ratio is taken within each turn. Above 1 we are faster.
A topic is a file beside this one that yields its rows from a function of its own name.
"""

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from turns import Measure, Row, show

import rankbench.kernels  # noqa: F401  before any library that loads OpenMP: waiting threads are to sleep

TOPICS = tuple(sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - {"__main__", "turns"}))
LIBRARIES = ("rankbench", "clarabel", "cornac", "implicit", "ranx", "scikit-learn", "numpy", "scipy")


def rows_of(topic: str, repeats: int) -> list[Row | Measure]:
    """What a topic measures; its libraries are imported only now."""
    return list(getattr(import_module(topic), topic)(repeats))


def save(path: Path, rows: list[Row | Measure]) -> None:
    """Every measurement and what it was measured on, as JSON."""
    about = {"machine": platform.machine(), "system": platform.platform(), "cores": os.cpu_count()}
    versions = {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
    measured = [asdict(row) | ({"ratios": row.ratios} if isinstance(row, Row) else {}) for row in rows]
    path.write_text(json.dumps({"about": about, "versions": versions, "rows": measured}, indent=2) + "\n")


def main() -> None:
    """Measure, print, and save where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"some of {', '.join(TOPICS)}; all if none is named")
    parser.add_argument("--repeats", type=int, default=7, help="turns per comparison, at least 5")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measurement to this file")
    options = parser.parse_args()
    if options.repeats < 5:
        parser.error(f"--repeats {options.repeats} is too few for a median with a spread: at least 5")
    if unknown := [topic for topic in options.topics if topic not in TOPICS]:
        parser.error(f"no topic is called {unknown[0]!r}: there are {', '.join(TOPICS)}")
    rows = []
    for topic in options.topics or TOPICS:
        found = rows_of(topic, options.repeats)
        print(show(found), flush=True)
        rows += found
    if options.json:
        save(options.json, rows)


if __name__ == "__main__":
    main()
