"""Printing plain lines. This imports little, so that it also works where kernels cannot be imported."""

import sys
from typing import TextIO

from rankbench.core.texts import LONGEST, safe, visible


def show(text: str, to: TextIO | None = None) -> None:
    """Print plain text, by default on standard output, line by line, without markup, colours or line wrapping."""
    (to or sys.stdout).write("".join(f"{visible(line)}\n" for line in text.split("\n")))


def complain(text: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"rankbench: {safe(' '.join(text.split()), 2 * LONGEST)}\n")


def mention(text: str) -> None:
    """Print one line on standard error that is no complaint, where standard output is for results."""
    sys.stderr.write(f"{safe(' '.join(text.split()), 2 * LONGEST)}\n")
