"""Where data lies on this machine: the cache of what was fetched or parsed."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`RANKBENCH_CACHE`, or the user's own cache folder as the platform has it."""
    if folder := os.environ.get("RANKBENCH_CACHE"):
        return Path(folder)
    import pooch  # noqa: PLC0415  keeps the command line's help fast

    return Path(pooch.os_cache("rankbench"))
