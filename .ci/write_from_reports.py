"""Write what others say of the reproduction in reports/: README's table of published numbers, and the durations that
`run --dry-run` tells of experiments that have not run yet.

`python .ci/write_from_reports.py` writes both, and `--check` only says whether they are up to date.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "reports" / "README.md"
README = ROOT / "README.md"
DURATIONS = ROOT / "rankbench" / "experiments" / "durations.json"
START, END = "<!-- counts -->\n", "<!-- end of counts -->"
UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0}


def counts(report: str) -> str:
    """The first table of reports/README.md: each paper's published numbers by verdict."""
    found = re.search(r"^\| paper \|.*\n(?:\|.*\n)+", report, re.MULTILINE)
    if not found:
        raise SystemExit("reports/README.md has no table of papers: run make reproduce")
    return found[0]


def readme(report: str) -> str:
    """The README's text with the table made again."""
    before, start, after = README.read_text(encoding="utf-8").partition(START)
    if not start or END not in after:
        raise SystemExit(f"README.md has no lines {START.strip()} and {END}")
    return f"{before}{start}{counts(report)}{after[after.index(END) :]}"


def durations(report: str) -> str:
    """How many cells and trials an experiment's full profile has, and their seconds together, as JSON."""
    processor = re.search(r"^Measured on:\n\n- (.*?), \d+ cores", report, re.MULTILINE)
    lines = re.findall(r"^\| ([\w-]+) \| ([\d.a-z ]+) \| ([\d.]+) \| (\d+) \| (\d+) \|$", report, re.MULTILINE)
    if not lines or not processor:
        raise SystemExit("reports/README.md has no table of wall times, or no machine: run make reproduce")
    each = {
        name: {"cells": int(cells) + int(trials), "seconds": round(seconds(wall) * float(at_a_time), 1)}
        for name, wall, at_a_time, cells, trials in lines
    }
    return json.dumps({"processor": processor[1], "experiments": each}, indent=1) + "\n"


def seconds(wall: str) -> float:
    """The seconds of a duration in words: `1 h 14 min`."""
    words = wall.split()
    return sum(float(number) * UNITS[unit] for number, unit in zip(words[::2], words[1::2], strict=True))


def main() -> None:
    """Write both files, or check them with `--check`."""
    report = REPORT.read_text(encoding="utf-8")
    for path, text in ((README, readme(report)), (DURATIONS, durations(report))):
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            where = path.relative_to(ROOT)
            raise SystemExit(f"{where} does not say what reports/ says: run python .ci/write_from_reports.py")


if __name__ == "__main__":
    main()
