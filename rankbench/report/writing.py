"""Writing the report: a page per paper, tables as CSV and LaTeX, figures as PDF and PNG, HTML pages.

What is made of an experiment is kept in the report's folder, and made again only if something has changed.
"""

import gzip
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.core.leftovers import remove_left_behind, replacing
from rankbench.core.regular import opened
from rankbench.core.texts import address, error_text, markdown
from rankbench.records.store import ResultsFolder, Store, Warn, write_text
from rankbench.records.studies import Study
from rankbench.report import pieces
from rankbench.report.analysis.costs import duration_sheet
from rankbench.report.analysis.ranks import draw_ranks, ranks
from rankbench.report.analysis.trials import trials, trials_to_csv
from rankbench.report.analysis.verdicts import added, in_words, score_sheet
from rankbench.report.apart import make_apart
from rankbench.report.asked import asked_tables
from rankbench.report.pieces import Kept, piece_of
from rankbench.report.render.differences import differences_page
from rankbench.report.render.figures.drawings import Drawing
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.ranking_functions import draw_bases, examples
from rankbench.report.render.tables import sheet, to_csv, to_latex, to_markdown
from rankbench.report.rows import rows
from rankbench.report.sections import Piece, Section, by_paper, machines
from rankbench.report.study import StoredRun, stored_runs

_SUFFIXES = (".csv", ".gz", ".tex", ".pdf", ".png")  # of the tables and figures that a report writes
_PARTS = ("tables", "figures")
_FEW = 2  # points of a figure that a table says as well
_OURS = '<meta name="generator" content="rankbench report">'  # in a page that a report wrote


@dataclass(frozen=True)
class _Wanted:
    """A run that the report shows: the name of its files, what it is made of, and what is kept of it."""

    run: StoredRun
    name: str
    made_of: str
    kept: Kept | None

    @property
    def work(self) -> int:
        """About how much work its piece is: the number of its results."""
        return sum(1 for _ in self.run.store.cells.glob("*.json"))


def write_report(results: ResultsFolder, warn: Warn, to: Path | None = None, page: bool = True) -> Path:
    """Write the report about all stored results; returns the path of its main page."""
    found = stored_runs(results)
    out = results.out
    if not found:
        older = "results, but no recorded run," if results.names() else "no results"
        raise UserError(f"{older} under {out}: run some first (rankbench run all --out {out})")
    folder = to or out / "report"
    try:
        wanted = [_wanted(run, name, folder, page) for name, run in _named(found).items()]
        _make_room(folder, wanted, {*experiments.names(), *results.names()})
        make_apart(_made_here, results.out, folder, {one.name: one.work for one in wanted if not one.kept}, page)
        made = [_piece(one, folder, warn, page) for one in wanted]
        return _write_pages(made, folder, page)
    except OSError as error:
        raise UserError(f"cannot write the report to {folder}: {error.strerror}") from None


def _named(found: Sequence[StoredRun]) -> dict[str, StoredRun]:
    """Each run by the name of its files; a user's experiment with a name that is taken gets another one."""
    named: dict[str, StoredRun] = {}
    for run in sorted(found, key=lambda run: (run.plan.experiment.name, run.plan.experiment.source != "")):
        first = name = run.plan.experiment.name
        number = 2
        while name in named:
            name, number = f"{first}-{number}", number + 1
        named[name] = run
    return named


def _wanted(run: StoredRun, name: str, folder: Path, page: bool) -> _Wanted:
    made_of = pieces.digest(run.store, run.plan, name, page)
    return _Wanted(run, name, made_of, pieces.load(folder, name, made_of))


def _make_room(folder: Path, wanted: Sequence[_Wanted], names: set[str]) -> None:
    """Make the folders, and remove what older reports wrote about these experiments and is not kept, or half wrote."""
    names |= {one.name for one in wanted}
    stay = {folder / name for one in wanted if one.kept for name in one.kept.files}
    for part in (folder / part for part in _PARTS):
        part.mkdir(parents=True, exist_ok=True)
        for path in part.iterdir():
            ours = any(path.stem == name or path.stem.startswith(f"{name}-") for name in names)
            if ours and path.suffix in _SUFFIXES and path not in stay and path.is_file():
                path.unlink()
    pieces.forget(folder, {one.name for one in wanted if one.kept})
    for inner in ("", pieces.FOLDER, *_PARTS):
        remove_left_behind(folder / inner, "*~.partial")


def _made_here(out: Path, folder: Path, names: list[str], page: bool) -> None:
    """Make and keep the pieces of these names, in a process of its own.

    It reports no problem, a full disk either: what is not kept is made again by the caller, who reports it.
    """
    with suppress(Exception):
        found = _named(stored_runs(ResultsFolder(out, _silent, untouched=True)))
        for name in names:
            _piece(_wanted(found[name], name, folder, page), folder, _silent, page)


def _silent(problem: str) -> None:
    pass


def _piece(wanted: _Wanted, folder: Path, warn: Warn, page: bool) -> Piece:
    """What is kept of an experiment, perhaps by now, or else is made."""
    kept = wanted.kept or pieces.load(folder, wanted.name, wanted.made_of)
    return kept.piece if kept else _made(wanted, folder, warn, page)


def _made(wanted: _Wanted, folder: Path, warn: Warn, page: bool) -> Piece:
    """Write an experiment's tables and figures, and keep what the pages show of it.

    An error here is reported and does not stop the other experiments.
    """
    store, study, name = wanted.run.store, wanted.run.study, wanted.name
    try:
        tables = _write_tables(study, name, folder)
        section = Section(study, name, worth_drawing(study), ranks=ranks(study))
        figures = _draw_figures(section, folder)
        piece = piece_of(section, page)
    except OSError:
        raise
    except Exception as error:
        problem = f"{name} cannot be shown whole: {error_text(error)}"
        warn(problem)
        return piece_of(Section(study, name, None, problem), page)
    if not _unreadable(store, study) and pieces.digest(store, wanted.run.plan, name, page) == wanted.made_of:
        pieces.save(folder, Kept(wanted.made_of, pieces.sums(folder, [*tables, *figures]), piece))
    return piece


def _unreadable(store: Store, study: Study) -> bool:
    """Whether a result lies there that cannot be read, so that the next report must say so again."""
    unknown = (entry.cell for entry in (*study.entries, *study.trials) if entry.result is None)
    return any(store.path(cell).exists() for cell in unknown)


def _write_tables(study: Study, name: str, folder: Path) -> list[str]:
    """Write an experiment's tables; returns their names in the folder."""
    texts = {f"tables/{name}.csv": to_csv(rows(study)), f"tables/{name}.tex": to_latex(sheet(study))}
    texts |= {f"tables/{name}-{asked.name}.csv": asked.to_csv(study) for asked in asked_tables(study)}
    for file, text in texts.items():
        write_text(folder / file, text)
    if not study.trials:
        return list(texts)
    packed = f"tables/{name}-trials.csv.gz"
    with replacing(folder / packed) as partial:
        partial.write_bytes(gzip.compress(trials_to_csv(trials(study)).encode(), mtime=0))
    return [*texts, packed]


def worth_drawing(study: Study) -> Drawing | None:
    """The experiment's figure; None where it has a point or two, or shows growth by two sizes, as the table says it."""
    if (found := drawing(study)) is None:
        return None
    points = [len(line.x) for panel in found.panels for line in panel.all_lines]
    number = max(points) if found.kind == "growth" else sum(points)
    return found if number > _FEW else None


def _draw_figures(section: Section, folder: Path) -> list[str]:
    """Draw an experiment's figures; returns the names of their files in the folder."""
    from rankbench.report.render.figures.plots import draw  # noqa: PLC0415  matplotlib is slow to import

    to, name = folder / "figures", section.name
    drawn = []
    if section.drawing:
        draw(section.drawing, to, name)
        drawn.append(name)
    if shown := examples(section.study):
        draw_bases(shown, (), to, f"{name}-basis")
        drawn.append(f"{name}-basis")
    if section.ranks:
        draw_ranks(section.ranks, to, f"{name}-ranks")
        drawn.append(f"{name}-ranks")
    return [f"figures/{file}{ending}" for file in drawn for ending in (".pdf", ".png")]


def _write_pages(made: Sequence[Piece], folder: Path, page: bool) -> Path:
    """Write the Markdown pages and, if `page`, the HTML pages; returns the path of the main page."""
    for paper, members in by_paper(made).items():
        title = f"# {markdown(members[0].origin)}\n\n"
        write_text(folder / f"{paper}.md", title + "\n".join(piece.markdown for piece in members))
    write_text(folder / "differences.md", differences_page(made))
    write_text(folder / "README.md", _index(made))
    if not page:
        return folder / "README.md"
    from rankbench.report.render.page import PLOTLY, pages  # noqa: PLC0415  slow to import

    written = pages(made)
    for path in (*folder.glob("*.html"), folder / PLOTLY):
        if path.name not in written and path.is_file() and (path.name == PLOTLY or _OURS in _head(path)):
            path.unlink()
    for name, text in written.items():
        write_text(folder / name, text)
    return folder / "index.html"


def _head(path: Path) -> str:
    """The beginning of a file."""
    with opened(path) as file:
        return file.read(1000).decode("utf-8", "replace")


def _index(made: Sequence[Piece]) -> str:
    scores = added(piece.score for piece in made)
    lines = ["# The reproduction as last run", ""]
    lines += [in_words(scores), "", to_markdown(score_sheet(scores))] if scores else []
    for paper, members in by_paper(made).items():
        page = address(f"{paper}.md")
        lines.append(f"- [{markdown(members[0].origin)}]({page})")
        lines += [f"  - [{markdown(one.title)}]({page}#{address(one.name)})" for one in members]
    lines += ["", "[Every published number beside the measured one](differences.md), with the reasons of differences."]
    lines += ["", *_durations(made), *_made_on(made)]
    return "\n".join([*lines, ""])


def _durations(made: Sequence[Piece]) -> list[str]:
    """How long each experiment took, and all together; empty if no cell has run."""
    durations = [piece.duration for piece in made if piece.duration]
    if not durations:
        return []
    told = (
        "Wall time is how long cells of an experiment ran, without the pauses between runs; several may run at a time."
    )
    return [told, "", to_markdown(duration_sheet(durations))]


def _made_on(made: Sequence[Piece]) -> list[str]:
    """A line for each machine and set of versions that results were made on, with the dates; empty without results."""
    uses = machines(made)
    told = (markdown(f"{use.line}; {' to '.join(dict.fromkeys((use.first[:10], use.last[:10])))}") for use in uses)
    return ["Measured on:", "", *(f"- {line}" for line in told)] if uses else []
