"""Writing the report: a page per paper, tables as CSV and LaTeX, figures as PDF and PNG, one HTML page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.records.cells import skip_lines
from rankbench.records.machines import Machine
from rankbench.records.store import ResultsFolder, Warn, write_text
from rankbench.records.studies import Study
from rankbench.report.analysis.costs import cost_tables
from rankbench.report.analysis.durations import duration_sheet
from rankbench.report.analysis.ranks import draw_ranks, ranks
from rankbench.report.analysis.scoreboard import in_words, score_sheet, scoreboard
from rankbench.report.analysis.trials import trial_sheet, trials, trials_to_csv
from rankbench.report.analysis.verdicts import published_sheet
from rankbench.report.render.differences import differences_page
from rankbench.report.render.facts import facts
from rankbench.report.render.ranking_functions import bases, draw_basis
from rankbench.report.render.series import drawing
from rankbench.report.render.tables import definitions, notes, rows, sheet, to_csv, to_latex, to_markdown
from rankbench.report.sections import Section, by_paper
from rankbench.report.study import studies

_SUFFIXES = (".csv", ".tex", ".pdf", ".png")  # of the tables and figures that a report writes


def write_report(results: ResultsFolder, warn: Warn, to: Path | None = None, page: bool = True) -> Path:
    """Write the report about all stored results; returns the path of its main page."""
    found = studies(results)
    out = results.out
    if not found:
        older = "results, but no recorded run," if results.names() else "no results"
        raise UserError(f"{older} under {out}: run some first (rankbench run all --out {out})")
    folder = to or out / "report"
    try:
        sections = _sections(found)
        _make_room(folder, {*experiments.names(), *results.names(), *(section.name for section in sections)})
        written = [_written(section, folder, warn) for section in sections]
        return _write_pages(written, folder, page)
    except OSError as error:
        raise UserError(f"cannot write the report to {folder}: {error.strerror}") from None


def _make_room(folder: Path, names: set[str]) -> None:
    """Make the folders for tables and figures, and remove older ones of these experiments; all other files stay."""
    for part in (folder / "tables", folder / "figures"):
        part.mkdir(parents=True, exist_ok=True)
        for path in part.iterdir():
            ours = any(path.stem == name or path.stem.startswith(f"{name}-") for name in names)
            if ours and path.suffix in _SUFFIXES and path.is_file():
                path.unlink()


def _sections(found: Sequence[Study]) -> list[Section]:
    """A section for each study; a user's experiment with a name that is taken gets another file name."""
    named: dict[str, Study] = {}
    for study in sorted(found, key=lambda study: (study.name, study.experiment.source != "")):
        name, number = study.name, 2
        while name in named:
            name, number = f"{study.name}-{number}", number + 1
        named[name] = study
    return [Section(study, name) for name, study in named.items()]


def _written(section: Section, folder: Path, warn: Warn) -> Section:
    """Write an experiment's tables and figures; an error here is reported and does not stop the other experiments."""
    try:
        return _write_files(section, folder)
    except OSError:
        raise
    except Exception as error:
        problem = f"{section.name} cannot be shown whole: {type(error).__name__}: {error}"
        warn(problem)
        return Section(section.study, section.name, None, problem)


def _write_files(section: Section, folder: Path) -> Section:
    from rankbench.report.render.figures import draw  # noqa: PLC0415  matplotlib is slow to import

    study, name = section.study, section.name
    write_text(folder / "tables" / f"{name}.csv", to_csv(rows(study)))
    write_text(folder / "tables" / f"{name}.tex", to_latex(sheet(study)))
    if study.trials:
        write_text(folder / "tables" / f"{name}-trials.csv", trials_to_csv(trials(study)))
    for costs in cost_tables(study):
        write_text(folder / "tables" / f"{name}-{costs.name}.csv", costs.to_csv(study))
    if drawn := drawing(study):
        draw(drawn, folder / "figures", name)
    for number, basis in enumerate(bases(study), 1):
        draw_basis(basis, (), folder / "figures", f"{name}-basis-{number}")
    if ranked := ranks(study):
        draw_ranks(ranked, folder / "figures", f"{name}-ranks")
    return Section(study, name, drawn, ranks=ranked)


def _write_pages(sections: Sequence[Section], folder: Path, page: bool) -> Path:
    """Write the Markdown pages and, if `page`, the HTML page; returns the path of the main page."""
    for paper, members in by_paper(sections).items():
        title = f"# {members[0].study.experiment.origin}\n\n"
        write_text(folder / f"{paper}.md", title + "\n".join(map(_markdown, members)))
    write_text(folder / "differences.md", differences_page(sections))
    write_text(folder / "README.md", _index(sections))
    if not page:
        return folder / "README.md"
    from rankbench.report.render.page import page as html  # noqa: PLC0415

    write_text(folder / "index.html", html(sections))
    return folder / "index.html"


def _index(sections: Sequence[Section]) -> str:
    lines = ["# The reproduction as last run", "", *_scores(sections)]
    for paper, members in by_paper(sections).items():
        lines.append(f"- [{members[0].study.experiment.origin}]({paper}.md)")
        lines += [f"  - [{one.study.experiment.title}]({paper}.md#{one.name})" for one in members]
    lines += ["", "[Every published number beside the measured one](differences.md), with the reasons of differences."]
    lines += ["", *_durations(sections), "Measured on:", "", *(f"- {line}" for line in made_on(sections)), ""]
    return "\n".join(lines)


def _durations(sections: Sequence[Section]) -> list[str]:
    """How long each experiment took, and all together; empty if no cell has run."""
    studies = [section.study for section in sections if section.study.results]
    if not studies:
        return []
    told = (
        "Wall time is how long cells of an experiment ran, without the pauses between runs; several may run at a time."
    )
    return [told, "", to_markdown(duration_sheet(studies))]


def _scores(sections: Sequence[Section]) -> list[str]:
    """The scoreboard over all published numbers; empty where there is none."""
    scores = scoreboard(section.study for section in sections)
    return [in_words(scores), "", to_markdown(score_sheet(scores))] if scores else []


def made_on(sections: Iterable[Section]) -> list[str]:
    """A line for each machine and set of versions that results were made on, with the dates."""
    days: dict[Machine, set[str]] = {}
    for section in sections:
        for result in section.study.results:
            days.setdefault(result.machine, set()).add(result.finished[:10])
    return [f"{_machine(machine)}; {_span(found)}" for machine, found in days.items()]


def _span(days: set[str]) -> str:
    first, last = min(days), max(days)
    return first if first == last else f"{first} to {last}"


def _machine(machine: Machine) -> str:
    """A machine in one line: processor, compiler, versions and commit."""
    versions = ", ".join(f"{name} {machine.version(name)}" for name in ("numpy", "scipy"))
    commit = f", commit {machine.git}" if machine.git else ""
    kernels = f", kernels {machine.kernels} ({machine.level})" if machine.kernels else ""
    return (
        f"{machine.cpu}, {machine.usable_cores} cores, {machine.compiler}, Python {machine.python}, {versions}, "
        f"rankbench {machine.version('rankbench')}{commit}{kernels}"
    )


def _markdown(section: Section) -> str:
    """One experiment's section, in Markdown."""
    study, name = section.study, section.name
    experiment = study.experiment
    seed = f", seed {study.seed}" if study.seed else ""
    title = f"{experiment.title} ({study.profile} profile{seed})."
    lines = [f"## {name}", title, experiment.about.strip()]
    if section.problem:
        return "\n\n".join([*lines, f"{_without_tags(section.problem)}."]) + "\n"
    lines += notes(study)
    if section.drawing:
        lines.append(f"![{experiment.title}](figures/{name}.png)")
    lines += [f"{one.title}:\n\n{to_markdown(one.sheet)}\n{one.legend}" for one in cost_tables(study)]
    if published := published_sheet(study):
        lines.append(f"Measured beside published:\n\n{to_markdown(published).rstrip()}")
    if experiment.differences:
        lines += [f"{experiment.differences_title}:", experiment.differences.strip()]
    lines.append(f"All measurements:\n\n{to_markdown(sheet(study)).rstrip()}")
    lines.append("\n".join(f"- {fact.name}: {'; '.join(fact.lines)}" for fact in facts(study)))
    if section.ranks:
        lines += [section.ranks.text, f"![Critical-difference diagram](figures/{name}-ranks.png)"]
    for number, basis in enumerate(bases(study), 1):
        picture = f"![Basic ranking functions](figures/{name}-basis-{number}.png)"
        lines.append(f"Basic ranking functions of {basis.solver} on {basis.data}:\n\n{picture}")
    for word, failed in (("Skipped", False), ("Failed", True)):
        told = skip_lines(skip for skip in study.skips if skip.failed == failed)
        lines += [f"{word}: {_without_tags(line)}." for line in told]
    lines += definitions(study)
    if study.trials:
        table = to_markdown(trial_sheet(trials(study)))
        count = len(study.trials)
        lines.append(f"<details><summary>All trials of the tuning ({count})</summary>\n\n{table}\n</details>")
    return "\n\n".join(lines) + "\n"


def _without_tags(text: str) -> str:
    """Text whose brackets Markdown does not take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
