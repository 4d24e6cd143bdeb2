"""The command line: the verbs, a run as a person sees it, the one printer, and descriptions of what there is."""

from rankbench.cli.app import main

__all__ = ["main"]
