"""The cache folder for downloaded and parsed data."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder `RANKBENCH_CACHE`, or the platform's default cache folder for rankbench."""
    if folder := os.environ.get("RANKBENCH_CACHE"):
        return Path(folder)
    import pooch  # noqa: PLC0415  keeps the command line's help fast

    return Path(pooch.os_cache("rankbench"))
