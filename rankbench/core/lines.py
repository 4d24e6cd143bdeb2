"""Printing plain lines. This imports little, so that it also works where kernels cannot be imported."""

import shlex
import sys
from pathlib import Path
from typing import TextIO

from rankbench.core.texts import LONGEST, safe, visible

RESULTS = "results"  # where results are stored, unless the user names another folder


def in_folder(command: str, out: Path) -> str:
    """A command to type, for results in this folder."""
    return command if out == Path(RESULTS) else f"{command} --out {shlex.quote(str(out))}"


def show(text: str, to: TextIO | None = None) -> None:
    """Print plain text, by default on standard output, line by line, without markup, colours or line wrapping."""
    (to or sys.stdout).write("".join(f"{visible(line)}\n" for line in text.split("\n")))


def complain(text: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"rankbench: {safe(' '.join(text.split()), 2 * LONGEST)}\n")


def mention(text: str) -> None:
    """Print one line on standard error that is no complaint, where standard output is for results."""
    sys.stderr.write(f"{safe(' '.join(text.split()), 2 * LONGEST)}\n")
