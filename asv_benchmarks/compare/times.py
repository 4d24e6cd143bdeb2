"""Timing two trees in turns, by the CPU seconds of a process for each, so that a busy machine disturbs both alike."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path

from trees import CASES, environment


def timed(trees: tuple[Path, Path], names: list[str], turns: int) -> dict[str, list[float]]:
    """By case, the ratio of the second tree's CPU seconds to the first one's in each turn, after one to warm up."""
    with _process(trees[0]) as one, _process(trees[1]) as other:
        found = {name: [_seconds(other, name) / _seconds(one, name) for _ in range(turns + 1)][1:] for name in names}
    return {name: ratios for name, ratios in found.items() if not any(map(isnan, ratios))}


@contextmanager
def _process(tree: Path) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(CASES), "time"], env=environment(tree), **pipes) as process:
        yield process
        process.stdin.close()


def _seconds(process: subprocess.Popen[str], name: str) -> float:
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return float(process.stdout.readline() or "nan")
