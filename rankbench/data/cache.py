"""The cache folder for downloaded and parsed data."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder `RANKBENCH_CACHE`, or the platform's default cache folder for rankbench."""
    if folder := os.environ.get("RANKBENCH_CACHE"):
        return Path(folder)
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(usual), "rankbench")
