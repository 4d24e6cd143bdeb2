"""Speed comparison with other libraries in one process: `python asv_benchmarks/peers [TOPIC...]`.

Needs the extra `peers`. The other library and rankbench take turns, so that a busy machine slows both. Every number
is a median with its minimum and maximum; a ratio is taken within each turn, and above 1 rankbench is faster.
A topic is a module in this folder with a function of the same name that yields the rows.
"""

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from turns import Measure, Row, show

import rankbench.kernels  # noqa: F401  before any library that loads OpenMP: waiting threads are to sleep

TOPICS = tuple(sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - {"__main__", "turns"}))
LIBRARIES = (
    "rankbench",
    "choix",
    "clarabel",
    "cornac",
    "evalica",
    "implicit",
    "ranx",
    "scikit-learn",
    "numpy",
    "pandas",
    "scipy",
)


def rows_of(topic: str, repeats: int) -> list[Row | Measure]:
    """The measurements of a topic; the topic's libraries are imported only here."""
    return list(getattr(import_module(topic), topic)(repeats))


def save(path: Path, rows: list[Row | Measure]) -> None:
    """Write all measurements and the machine to a JSON file."""
    about = {"machine": platform.machine(), "system": platform.platform(), "cores": os.cpu_count()}
    versions = {"python": platform.python_version()} | {name: _version(name) for name in LIBRARIES}
    measured = [asdict(row) | ({"ratios": row.ratios} if isinstance(row, Row) else {}) for row in rows]
    path.write_text(json.dumps({"about": about, "versions": versions, "rows": measured}, indent=2) + "\n")


def _version(library: str) -> str | None:
    """The version of a library, None if it is not installed: its topics have been left out."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def main() -> None:
    """Measure the chosen topics, print the results, and optionally save them."""
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
        try:
            found = rows_of(topic, options.repeats)
        except ModuleNotFoundError as error:
            print(f"{topic} is left out: {error}; to install it: pip install -e .[peers]", flush=True)
            continue
        print(show(found), flush=True)
        rows += found
    if options.json:
        save(options.json, rows)


if __name__ == "__main__":
    main()
