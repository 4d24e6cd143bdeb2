"""Write the README's table of published numbers, which is that of reports/README.md.

`python .ci/write_readme_counts.py` writes it, and `--check` only says whether it is up to date.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
START, END = "<!-- counts -->\n", "<!-- end of counts -->"


def counts(report: str) -> str:
    """The first table of reports/README.md: each paper's published numbers by verdict."""
    found = re.search(r"^\| paper \|.*\n(?:\|.*\n)+", report, re.MULTILINE)
    if not found:
        raise SystemExit("reports/README.md has no table of papers: run make reproduce")
    return found[0]


def written(readme: str, report: str) -> str:
    """The README's text with the table made again."""
    before, start, after = readme.partition(START)
    if not start or END not in after:
        raise SystemExit(f"README.md has no lines {START.strip()} and {END}")
    return f"{before}{start}{counts(report)}{after[after.index(END) :]}"


def main() -> None:
    """Write the table, or check it with `--check`."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    new = written(text, (ROOT / "reports" / "README.md").read_text(encoding="utf-8"))
    if "--check" not in sys.argv[1:]:
        path.write_text(new, encoding="utf-8")
    elif new != text:
        raise SystemExit("README.md's counts are not those of reports/: run python .ci/write_readme_counts.py")


if __name__ == "__main__":
    main()
