"""What got slower since another commit: `python asv_benchmarks/compare BASE`, or `make bench-compare BASE=main`.

Compares the checkout as it is built now with BASE, which is built beside it. Two measures, by default both:

- instructions, counted by callgrind: the same on a busy machine, so that 3 % more count as slower;
- CPU time, in turns: slower if three quarters of the turns took at least 15 % longer. It also sees memory and caches.

Prints a line for each case that got slower or faster and for each model whose bits changed. The exit code is 1 if a
case got slower, else 0. `--changed`, with which the gate asks, ends at once if no kernel differs from BASE, and
builds BASE's by the checkout's setup.py, which compiles only those that differ.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from counts import counted, missing
from times import timed
from trees import ROOT, built, changed_kernels, commit_of, environment, said

MORE = 1.03  # times as many instructions that count as slower, unless `--more` says otherwise
LONGER = 1.15  # times as long, in three quarters of the turns, that counts as slower


def by_count(before: dict[str, int], now: dict[str, int], more: float = MORE) -> dict[str, float]:
    """The cases whose number of instructions has changed enough, with the ratio."""
    ratios = {name: now[name] / before[name] for name in before if name in now}
    return {name: ratio for name, ratio in ratios.items() if ratio >= more or ratio <= 1 / more}


def by_time(found: dict[str, list[float]]) -> dict[str, float]:
    """The cases that take clearly longer or shorter in most turns, with the median ratio."""
    quarters = {name: quantiles(ratios, n=4) for name, ratios in found.items()}
    return {
        name: median(found[name]) for name, (low, _, high) in quarters.items() if low >= LONGER or high <= 1 / LONGER
    }


def told(changed: dict[str, float], unit: str, cases: int) -> tuple[list[str], bool]:
    """A line for each case that has changed, the slower ones first, and whether one got slower."""
    order = sorted(changed.items(), key=lambda item: -item[1])
    lines = [f"{'SLOWER' if ratio > 1 else 'faster'}  {ratio:5.2f} x the {unit}  {name}" for name, ratio in order]
    lines.append(f"{cases - len(changed)} of {cases} cases take the same {unit} as before")
    return lines, any(ratio > 1 for ratio in changed.values())


def side_by_side(about: Callable[[Path], dict[str, Any]], trees: tuple[Path, Path]) -> list[dict[str, Any]]:
    """What is to be known about both trees, found at the same time: it does not depend on how busy the machine is."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(about, trees))


def main() -> None:
    """Compare, print what changed, and exit with 1 if something got slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="BASE", help="the commit to compare with, such as main or HEAD~1")
    parser.add_argument("--only", choices=("instructions", "time"), help="one of the two measures; default: both")
    parser.add_argument("--cases", default="", metavar="REGEX", help="only cases whose name it matches, such as SGD")
    parser.add_argument("--changed", action="store_true", help="only if a kernel differs from BASE")
    parser.add_argument("--more", type=float, default=MORE, help="times the instructions that count; default: 1.03")
    parser.add_argument("--turns", type=int, default=15, help="turns in which both are timed; default: 15")
    options = parser.parse_args()
    base = commit_of(options.base)
    if options.changed and not changed_kernels(base):
        print(f"no kernel differs from {options.base}")
        return
    trees = built(base, as_here=options.changed), ROOT
    listed = said(ROOT, "list")
    names = [name for name in listed.splitlines() if re.search(options.cases, name)]
    if not names:
        sys.exit(f"no case matches {options.cases!r}: there are\n{listed}")
    slower = False
    if options.only != "time":
        if lacking := missing():
            sys.exit(f"instructions are counted by {lacking}; --only time does without")
        before, now = side_by_side(lambda tree: counted(environment(tree), names), trees)
        lines, worse = told(by_count(before, now, options.more), "instructions", len(now))
        print("\n".join(lines), flush=True)
        slower |= worse
    if options.only != "instructions":
        found = timed(trees, names, options.turns)
        lines, worse = told(by_time(found), "CPU time", len(found))
        print("\n".join(lines), flush=True)
        slower |= worse
    one, other = side_by_side(lambda tree: json.loads(said(tree, "digest")), trees)
    for name in one.keys() & other.keys():
        if one[name] != other[name]:
            print(f"OTHER BITS  the model of {name}")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
