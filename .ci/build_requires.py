"""Prints what pyproject.toml needs for building, one requirement on each line: `make lock` locks it too."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Print the requirements of the build."""
    print(*tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"], sep="\n")


if __name__ == "__main__":
    main()
