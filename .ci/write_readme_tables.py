"""Write the README's result tables from reports/tables/*.csv, between its `<!-- table: NAME -->` lines.

`python .ci/write_readme_tables.py` writes them, and `--check` only says whether they are up to date. A number is the
measured mean with the published one in brackets; bold means as much as in the reports.
"""

import csv
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEVEL = 0.05
Line = Mapping[str, str]  # a line of a CSV file, by heading
Choice = tuple[str, Mapping[str, str]]  # a heading, and the texts that the fields of its lines contain


@dataclass(frozen=True)
class Table:
    """A table of the README: which lines of which experiment stand in its rows and columns."""

    experiment: str
    corner: str
    rows: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    digits: int = 3

    @property
    def text(self) -> str:
        """The table in Markdown."""
        lines = _lines(self.experiment)
        head = [self.corner, *(name for name, _ in self.columns)]
        body = [[name, *(self._cell(lines, row, column) for _, column in self.columns)] for name, row in self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)) + "\n"

    def _cell(self, lines: Iterable[Line], row: Mapping[str, str], column: Mapping[str, str]) -> str:
        """The measured number with the published one; several if the fields fit several metrics."""
        wanted = [(field, text) for choice in (row, column) for field, text in choice.items()]
        found = [line for line in lines if all(re.search(text, line[field]) for field, text in wanted)]
        if not found:
            raise SystemExit(f"{self.experiment} has no line with {wanted}: run make reproduce")
        return ", ".join(self._number(line) for line in found)

    def _number(self, line: Line) -> str:
        if not line["measured"]:
            return line["status"]
        shown = f"{float(line['measured']):.{self.digits}f}"
        shown = f"**{shown}**" if line["best"] == "yes" else shown
        return f"{shown} ({float(line['published']):.{self.digits}f})" if line["published"] else shown


def _lines(experiment: str) -> list[Line]:
    """The lines of an experiment's table, each with whether it is in bold."""
    with (ROOT / "reports" / "tables" / f"{experiment}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = []
    for line in lines:
        rivals = [
            one for one in lines if all(one[name] == line[name] for name in ("data", "split", "metric")) and one["low"]
        ]
        if "verdict" in line:
            best = line["verdict"] not in ("", "worse") and int(line["n"]) > 1
        else:  # a table of before verdicts had words, which `make reproduce` replaces
            best = len(rivals) > 1 and line["low"] and (line["p"] == "" or float(line["p"]) >= LEVEL)
        found.append({**line, "best": "yes" if best else ""})
    return found


def _of(**fields: str) -> Mapping[str, str]:
    return fields


SOLVERS = ("global", "altsvm", "sgd", "lcr", "cofirank", "convex-erm")
CENTRES = (("no constant", "none"), ("a constant per task", "fitted"))
TABLES = {
    "park2015-table1": Table(
        "park2015-table1",
        "NDCG@10 (Park et al. 2015, Table 1, published on MovieLens 10M)",
        rows=tuple((f"`{name}`", _of(solver=f"^{name}$")) for name in SOLVERS),
        columns=tuple(
            (f"N = {n}", _of(data="^ml-1m", split=rf"n-per-user\[n={n},", metric="^ndcg@10$")) for n in (20, 50, 100)
        ),
    ),
    "park2015-table2": Table(
        "park2015-table2",
        "Precision@1, precision@10 on MovieLens 1M (Park et al. 2015, Table 2)",
        rows=(
            ("`altsvm`, rank 100, lam 1000", _of(solver="^altsvm$", settings="^rank=100,lam=1000,")),
            ("`altsvm`, rank 40, lam by validation", _of(solver="^altsvm$", settings="^rank=40,")),
            ("`robirank`", _of(solver="^robirank$")),
            ("`sgd`", _of(solver="^sgd$")),
            ("`popularity`", _of(solver="^popularity$")),
        ),
        columns=tuple((f"C = {c:,}", _of(split=rf"C={c},", metric=r"^precision@10?\[")) for c in (1000, 2000, 5000)),
    ),
    "gunasekar2016-table2": Table(
        "gunasekar2016-table2",
        "MovieLens 100K's five folds (Gunasekar et al. 2016, Table 2)",
        rows=(
            ("`rmc`", _of(solver="^rmc$")),
            ("`smc`, raw", _of(solver="^smc$", settings="centred=false")),
            ("`smc`, centred", _of(solver="^smc$", settings="centred=true")),
            ("`cofirank`, regression", _of(solver="^cofirank$", settings="loss=regression")),
        ),
        columns=(
            ("NDCG@5", _of(metric="^ndcg@5")),
            ("precision@5", _of(metric="^precision@5")),
            ("Spearman", _of(metric="^spearman$")),
            ("Kendall", _of(metric="^kendall$")),
        ),
    ),
    "cheng2018-table2": Table(
        "cheng2018-table2",
        "Pairwise accuracy (Cheng et al. 2018, Table 2)",
        rows=(
            *((f"`frsvm`, rank {k}", _of(solver="^frsvm$", settings=f"rank={k}(,|$)")) for k in (10, 20, 30)),
            *((f"`ranksvm-{kind}`", _of(solver=f"^ranksvm-{kind}$")) for kind in ("separate", "joint", "var")),
            *((f"`imc`, {name}", _of(solver="^imc$", settings=f"centre={value}")) for name, value in CENTRES),
        ),
        columns=tuple(
            (name, _of(split=rf"n={n},", metric=r"^pairwise-accuracy\[pairs=both,average=pairs\]$"))
            for name, n in (("trained on all pairs of 41 items", 41), ("of 33 items", 33))
        ),
    ),
    "cortes2007-table1": Table(
        "cortes2007-table1",
        "MSD, M1D (Cortes et al. 2007, Table 1)",
        rows=(
            *((f"`{name}`", _of(solver=f"^{name}$")) for name in ("mprank", "svrank")),
            ("`rankboost`, rounds by validation", _of(solver="^rankboost$", settings="rounds=validated")),
            ("`rankboost`, 1,000 rounds", _of(solver="^rankboost$", settings="rounds=all")),
        ),
        columns=tuple(
            (f"{low}-{low + 20}", _of(data="^ml-1m", split=f"low={low},", metric="^(msd|m1d)$")) for low in (20, 40, 60)
        ),
        digits=2,
    ),
}


def written(text: str) -> str:
    """The README's text with every table made again."""
    for name, table in TABLES.items():
        start, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
        if start not in text:
            raise SystemExit(f"README.md has no line {start.strip()}")
        before, _, after = text.partition(start)
        text = f"{before}{start}{table.text}{after[after.index(end) :]}"
    return text


def main() -> None:
    """Write the tables, or check them with `--check`."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    new = written(text)
    if "--check" in sys.argv[1:]:
        if new != text:
            raise SystemExit("README.md's tables are not those of reports/: run python .ci/write_readme_tables.py")
    else:
        path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
