"""Build the wheel of a commit for airspeed velocity, with the kernels of the commits before where they are the same.

    python build_wheel.py SOURCES WHEELS

airspeed velocity empties its folder of sources between two commits. So what was built lies in the folder of its
environment meanwhile, and setup.py finds out what of it can be used.
"""

import shutil
import subprocess
import sys
from pathlib import Path

KEPT = Path(sys.prefix) / "kept-kernels"
NAMES = ("release", "recipe.json", "digest")  # in build/: the C code, and what it was made of


def copy_built(tree: Path, installed: Path, to: Path) -> None:
    """Copy what was built of a tree into another: its C code, and its kernels, which lie below `installed`."""
    roots = [tree / "build" / name for name in NAMES]
    files = [(file, file.relative_to(tree)) for root in roots for file in (root, *root.rglob("*"))]
    files += [(file, file.relative_to(installed)) for file in (installed / "rankbench" / "kernels").rglob("*.so")]
    for file, place in files:
        if file.is_file():
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to / place)


def main() -> None:
    """Build the wheel with what is kept, and keep what was built."""
    sources, wheels = map(Path, sys.argv[1:])
    copy_built(KEPT, KEPT, sources)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*command, "--wheel-dir", str(wheels), str(sources)], check=True)
    shutil.rmtree(KEPT, ignore_errors=True)
    for built in (sources / "build").glob("lib.*"):
        copy_built(sources, built, KEPT)


if __name__ == "__main__":
    main()
