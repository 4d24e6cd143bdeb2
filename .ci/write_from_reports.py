"""Write what others say of the reproduction in reports/: README's table of published numbers, the durations that
`run --dry-run` tells of experiments that have not run yet, and the first table of docs/speed.md.

`python .ci/write_from_reports.py` writes all three, and `--check` only says whether they are up to date.
"""

import csv
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "reports" / "README.md"
README = ROOT / "README.md"
DURATIONS = ROOT / "rankbench" / "experiments" / "durations.json"
START, END = "<!-- counts -->\n", "<!-- end of counts -->"
SPEED = ROOT / "docs" / "speed.md"
LIKE_START, LIKE_END = "<!-- like against like -->\n", "<!-- end of like against like -->"
LIKE = {  # the solvers of other packages, and ours of the same method
    "MF of cornac": "MF, centre none",
    "MF of LensKit": "MF, centre none",
    "BPR of cornac": "BPR, biases",
    "BPR of implicit": "BPR, biases",
    "LightFM": "BPR, biases, negatives warp",
    "ALS of implicit": "iALS",
    "EASE of cornac": "EASE",
    "LIBLINEAR": "RankSVM, joint",
}
UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0}


def counts(report: str) -> str:
    """The first table of reports/README.md: each paper's published numbers by verdict."""
    found = re.search(r"^\| paper \|.*\n(?:\|.*\n)+", report, re.MULTILINE)
    if not found:
        raise SystemExit("reports/README.md has no table of papers: run make reproduce")
    return found[0]


def between(path: Path, start: str, end: str, text: str) -> str:
    """The file's text, with this one between two of its lines."""
    before, found, after = path.read_text(encoding="utf-8").partition(start)
    if not found or end not in after:
        raise SystemExit(f"{path.relative_to(ROOT)} has no lines {start.strip()} and {end}")
    return f"{before}{start}{text}{after[after.index(end) :]}"


def like_against_like() -> str:
    """The same method in rankbench and in other packages: values, and ratios of seconds with their intervals."""
    rows = []
    for path in sorted((ROOT / "reports" / "tables").glob("peers-*-rivals.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows += [row for row in csv.DictReader(file) if LIKE.get(row["peer"]) == row["ours"] and row["ours_value"]]
    rows.sort(key=lambda row: list(LIKE).index(row["peer"]))
    head = "| rankbench : other | data | measured by | values | as many steps | equal quality |\n"
    return (
        head
        + "|---|---|---|---|---|---|\n"
        + "".join(
            f"| {row['ours']} : {row['peer']} | {row['data']} | {row['metric'].partition('[')[0]} | "
            f"{float(row['ours_value']):.4f}, {float(row['peer_value']):.4f} | "
            f"{_ratio(row['ratio'], row['ratio_low'], row['ratio_high'])} | "
            f"{_ratio(row['equal_ratio'], row['equal_low'], row['equal_high'])} |\n"
            for row in rows
        )
    )


def _ratio(ratio: str, low: str, high: str) -> str:
    """A ratio of seconds with its interval, as far as they were measured."""
    told = f"{float(ratio):.2f}" if ratio else ""
    return told + (f" ({float(low):.2f} to {float(high):.2f})" if low else "")


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
    """Write the files, or check them with `--check`."""
    report = REPORT.read_text(encoding="utf-8")
    written = {
        README: between(README, START, END, counts(report)),
        DURATIONS: durations(report),
        SPEED: between(SPEED, LIKE_START, LIKE_END, like_against_like()),
    }
    for path, text in written.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            where = path.relative_to(ROOT)
            raise SystemExit(f"{where} does not say what reports/ says: run python .ci/write_from_reports.py")


if __name__ == "__main__":
    main()
