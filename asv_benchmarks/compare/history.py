"""How the speed of the kernels changed over the last commits: `python asv_benchmarks/compare/history.py`.

Every commit is built beside the checkout and measured with the checkout's benchmarks, in two ways:

- instructions of one call of each case, counted by callgrind: they do not depend on how busy the machine is;
- CPU time of each case, in turns with the oldest commit, so that other work disturbs both alike.

With `--to reports/speed.md` it writes the section `History` of that page, and the figure beside it.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from counts import CASES, counted, missing
from pages import with_section
from times import timed
from trees import ROOT, built, commit_of, environment

CHANGED = 1.03  # a case is listed if its instructions changed by this factor between two commits of the history
FIGURE = "figures/speed-history.png"
COMMAND = "make bench-history"


@dataclass(frozen=True)
class Point:
    """One commit of the history with what was measured there, each relative to the oldest commit that has the case."""

    commit: str
    day: str
    subject: str
    instructions: Mapping[str, float]
    seconds: Mapping[str, float]


def last_commits(number: int) -> list[str]:
    """The last commits that changed kernels or how they are built, the oldest first."""
    command = [
        "git",
        "log",
        "--first-parent",
        "--no-merges",
        f"--max-count={number}",
        "--format=%h",
        "--",
        "pyx",
        "setup.py",
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[::-1]


def measured(commits: list[str], names: list[str], turns: int) -> list[Point]:
    """The history of these commits, of which the first is the oldest, and of the checkout."""
    trees = [*(built(commit_of(commit)) for commit in commits), ROOT]
    counts = [_counted(tree, names) for tree in trees]
    seconds = [timed((trees[0], tree), names, turns) if turns else {} for tree in trees[1:]]
    before: dict[str, int] = {}
    for found in counts:
        before = found | before
    return [
        Point(
            *_about(commit),
            instructions={name: found[name] / before[name] for name in found},
            seconds={name: median(ratios) for name, ratios in times.items()},
        )
        for commit, found, times in zip([*commits, "HEAD"], counts, [{}, *seconds], strict=True)
    ]


def _counted(tree: Path, names: list[str]) -> dict[str, int]:
    """The instructions of the benchmarks with the kernels of this tree; the end of the program if none can run."""
    found = counted(tree, names)
    if not found:
        sys.exit(f"the benchmarks of the checkout cannot run with the code in {tree}: name later commits")
    return found


def _about(commit: str) -> tuple[str, str, str]:
    """The short name, the day and the first line of a commit."""
    command = ["git", "show", "--no-patch", "--date=format:%Y-%m-%d", "--format=%h%n%ad%n%s", commit]
    name, day, subject = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return name, day, subject


def changed(history: list[Point]) -> list[str]:
    """The cases whose instructions differ enough between any two commits, the most changed first."""
    spread = {}
    for name in {name for point in history for name in point.instructions}:
        ratios = [point.instructions[name] for point in history if name in point.instructions]
        spread[name] = max(ratios) / min(ratios)
    return sorted((name for name, ratio in spread.items() if ratio >= CHANGED), key=lambda name: (-spread[name], name))


def mean_ratio(ratios: Mapping[str, float]) -> float:
    """The geometric mean of ratios."""
    return exp(sum(map(log, ratios.values())) / len(ratios))


def section(history: list[Point], cases: int) -> str:
    """The section of the page: what was measured, a figure, and tables of the commits and of the cases that changed."""
    listed = changed(history)
    lines = [
        f"Written by `{COMMAND}`: {cases} benchmarks of kernels and of single steps of solvers, with the kernels of",
        f"{len(history)} commits. Instructions are counted by callgrind, relative to the oldest commit that has the",
        "benchmark. CPU time is the median ratio to the oldest commit, taken in turns. A dash: not measured there.",
        "",
        f"![Instructions of each benchmark over the commits]({FIGURE})",
        "",
        "| commit | day | what it did | instructions, mean ratio | CPU time, mean ratio |",
        "| --- | --- | --- | ---: | ---: |",
        *(
            f"| `{point.commit}` | {point.day} | {point.subject} | {mean_ratio(point.instructions):.3f} | "
            f"{f'{mean_ratio(point.seconds):.2f}' if point.seconds else '-'} |"
            for point in history
        ),
        "",
        f"{cases - len(listed)} of {cases} benchmarks took the same number of instructions, up to "
        f"{100 * (CHANGED - 1):.0f} %, at all commits. The others:",
        "",
        "| benchmark | " + " | ".join(f"`{point.commit}`" for point in history) + " |",
        "| --- |" + " ---: |" * len(history),
        *(
            f"| `{name}` | " + " | ".join(_shown(point.instructions.get(name)) for point in history) + " |"
            for name in listed
        ),
    ]
    return "\n".join(lines)


def _shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def draw(history: list[Point], path: Path) -> None:
    """One line for each benchmark over the commits; those that changed have a colour and a name."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    listed = changed(history)
    for name in sorted({name for point in history for name in point.instructions}, key=lambda name: name in listed):
        heights = [point.instructions.get(name, float("nan")) for point in history]
        style = {"label": name, "marker": "o"} if name in listed[:10] else {"color": "0.8", "linewidth": 0.8}
        axes.plot(range(len(history)), heights, **style)
    axes.set_xticks(range(len(history)), [point.commit for point in history])
    axes.set(xlabel="commit", ylabel="instructions, relative to the oldest commit", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    if listed:
        figure.legend(loc="outside right center", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure the commits, print the section, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="the commits, the oldest first; default: the last")
    parser.add_argument("--last", type=int, default=5, help="how many commits that changed kernels; default: 5")
    parser.add_argument("--turns", type=int, default=7, help="turns in which CPU time is taken, 0 for none; default: 7")
    parser.add_argument("--to", type=Path, metavar="PAGE", help="write the section History of this page")
    options = parser.parse_args()
    if lacking := missing():
        sys.exit(f"instructions are counted by {lacking}")
    names = subprocess.run(
        [sys.executable, str(CASES), "list"], env=environment(ROOT), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    history = measured(options.commits or last_commits(options.last), names, options.turns)
    text = section(history, len(names))
    print(text)
    if options.to:
        draw(history, options.to.parent / FIGURE)
        options.to.write_text(with_section(options.to, "History", text))


if __name__ == "__main__":
    main()
