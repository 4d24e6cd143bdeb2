"""How near each hot kernel comes to what this machine can do: `python asv_benchmarks/roof`, or `make roof`.

The machine is measured first, and again in every turn: the bandwidth of each cache level and of memory, the rate of
flops with and without wider instructions, and how long lines at random places take. Then a line for each kernel: its
time per unit of work, the least time that the machine could take for it, and its share of that roof. A share below
30 % is marked, with the reason where it is known.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))  # RankBoost's problem
sys.path.insert(0, str(Path(__file__).parents[1]))  # asv's benchmarks
sys.path.insert(0, str(Path(__file__).parent))

import descents  # noqa: F401  whose cases are known then
import orders  # noqa: F401
import products  # noqa: F401
from loops import compiled
from machine import Meter, described
from pages import with_section
from ready import CASES
from shares import as_csv, lines, section, table

from rankbench.core.blas import one_blas_thread
from rankbench.kernels import build_info


def options(words: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks/roof", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="only kernels whose name it matches, such as sgd")
    parser.add_argument("--list", action="store_true", help="print the names of the kernels, and measure nothing")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values, in seconds")
    parser.add_argument("--to", type=Path, metavar="PATH", help="write or replace the section 'Roof' of this report")
    parser.add_argument("--repeats", type=int, default=7, help="turns in which all are measured; default: 7")
    parser.add_argument("--least", type=float, default=0.02, help="seconds that a measurement takes at least")
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="the share of each problem's size, and of the memory that is measured; default: 1",
    )
    found = parser.parse_args(words)
    if found.repeats < 1:
        parser.error(f"--repeats {found.repeats}: at least 1 turn is needed")
    if not 0 < found.share <= 1:
        parser.error(f"--share {found.share:g} is no share: it is above 0 and at most 1")
    try:
        re.compile(found.only)
    except re.error as error:
        parser.error(f"--only {found.only!r} is no regular expression: {error}")
    return found


def main(words: list[str]) -> None:
    """Measure, and print or write what was found."""
    asked = options(words)
    chosen = [case for case in CASES if re.search(asked.only, case.name)]
    if not chosen or asked.list:
        names = "\n".join(case.name for case in CASES)
        sys.exit(f"no kernel matches --only {asked.only!r}: there are\n{names}") if not chosen else print(names)
        return
    if build_info.debug():
        sys.exit("the kernels are built with all checks, which take most of the time: install without them first")
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        meter = Meter(compiled(Path(folder)), asked.least, asked.share)
        found, machine = lines(chosen, meter.look, asked.repeats, asked.least, asked.share)
    if asked.csv:
        print(as_csv(found), end="")
    else:
        print("\n".join([*described(machine), "", table(found)]))
    if asked.to:
        asked.to.parent.mkdir(parents=True, exist_ok=True)
        asked.to.write_text(with_section(asked.to, "Roof", section(found, machine)))


if __name__ == "__main__":
    main(sys.argv[1:])
