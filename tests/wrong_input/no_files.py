"""What may stand in the place of a file and is none."""

import os
from pathlib import Path


def a_folder(path: Path) -> None:
    """A folder."""
    path.unlink(missing_ok=True)
    path.mkdir()


def a_pipe(path: Path) -> None:
    """A pipe that nobody writes into."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def a_link_to_nothing(path: Path) -> None:
    """A link to a file that is not there."""
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


def a_link_to_itself(path: Path) -> None:
    """A link to its own name."""
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)
