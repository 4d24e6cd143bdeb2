"""Build the wheel of a commit for airspeed velocity, with the kernels of the commits before where they are the same.

    python wheel.py SOURCES WHEELS

airspeed velocity empties its folder of sources between two commits. So what was built lies in the folder of its
environment meanwhile, and setup.py finds out what of it can be used.
"""

import shutil
import subprocess
import sys
from pathlib import Path

KEPT = Path(sys.prefix) / "kept-kernels"
NAMES = ("release", "recipe.json", "digest")  # in build/: the C code, and what it was made of


def take_over(kept: Path, sources: Path) -> None:
    """Put into a folder of sources what was built for another commit."""
    if kept.exists():
        shutil.copytree(kept, sources, dirs_exist_ok=True)


def keep(sources: Path, kept: Path) -> None:
    """Keep what was built in a folder of sources, in place of what was kept before."""
    shutil.rmtree(kept, ignore_errors=True)
    for path in (sources / "build" / name for name in NAMES):
        for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
            _copied(file, kept / file.relative_to(sources))
    for library in (sources / "build").glob("lib.*"):
        for file in library.rglob("*.so"):
            _copied(file, kept / file.relative_to(library))


def _copied(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, to)


def main() -> None:
    """Build the wheel, with what is kept, and keep what was built."""
    sources, wheels = map(Path, sys.argv[1:])
    take_over(KEPT, sources)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*command, "--wheel-dir", str(wheels), str(sources)], check=True)
    keep(sources, KEPT)


if __name__ == "__main__":
    main()
