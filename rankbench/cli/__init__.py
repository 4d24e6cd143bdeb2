"""The command line: the commands, running experiments, printing, and descriptions of solvers, data and metrics."""

from rankbench.cli.app import main

__all__ = ["main"]
