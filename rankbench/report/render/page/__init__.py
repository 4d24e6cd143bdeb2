"""The HTML page of the report: every table and figure, with the plotting script embedded, readable offline."""

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from plotly.offline import get_plotlyjs

from rankbench.metrics import RULES
from rankbench.records.cells import skip_lines
from rankbench.records.results import Result
from rankbench.records.studies import Study
from rankbench.report.analysis.costs import cost_tables
from rankbench.report.analysis.evidence import evidence
from rankbench.report.analysis.ranks import ranks_svg
from rankbench.report.analysis.scoreboard import in_words, score_sheet, scoreboard
from rankbench.report.analysis.trials import trial_sheet, trials
from rankbench.report.analysis.verdicts import published_sheet
from rankbench.report.render.facts import facts
from rankbench.report.render.page.markup import (
    Labels,
    blocks,
    breakable,
    bullets,
    fact_list,
    folded,
    labels_of,
    options,
    prose,
    switches,
    table,
)
from rankbench.report.render.page.plots import caption, figure_of, height_of, keys_of
from rankbench.report.render.ranking_functions import bases
from rankbench.report.render.ranking_functions import described as described_basis
from rankbench.report.render.series import Drawing, drawings
from rankbench.report.render.tables import VERDICTS, Sheet, notes, sheet
from rankbench.report.sections import Section, by_paper

_MACHINE = ("fingerprint", "basis", "processor", "cores", "memory GiB", "BLAS", "compiler", "Python", "NumPy", "SciPy")


def page(sections: Sequence[Section]) -> str:
    """The HTML page about these experiments."""
    studies = [section.study for section in sections]
    papers = by_paper(sections)
    return Template(_part("page.html")).substitute(
        style=_part("page.css"),
        script=_part("page.js"),
        plotly=get_plotlyjs(),
        summary=escape(_summary(studies)),
        scores=_scores(sections),
        contents="".join(_contents(paper, members) for paper, members in papers.items()),
        papers="\n".join(_paper(paper, members) for paper, members in papers.items()),
        machines=table(_machines(studies), "Machines"),
    )


def _part(name: str) -> str:
    return files("rankbench.report.render.page").joinpath(name).read_text(encoding="utf-8")


def _summary(studies: Sequence[Study]) -> str:
    entries = [entry for study in studies for entry in study.entries]
    good = sum(1 for entry in entries if entry.good)
    return f"{len(studies)} experiments, {good} of {len(entries)} cells ended well."


def _scores(sections: Sequence[Section]) -> str:
    """The scoreboard over all published numbers; empty where there is none."""
    scores = scoreboard(section.study for section in sections)
    if not scores:
        return ""
    links = {members[0].study.experiment.origin: f"#paper-{paper}" for paper, members in by_paper(sections).items()}
    shown = table(score_sheet(scores), "Published numbers, by paper", links=links)
    lead = f'<h2>Measured beside published</h2><p class="lead">{escape(in_words(scores))}</p>'
    return f'<div id="scores">{lead}{shown}</div>'


def _contents(paper: str, members: Sequence[Section]) -> str:
    """A paper's part of the table of contents."""
    lines = (f'<a href="#{escape(one.name)}">{escape(one.study.experiment.title)}</a>' for one in members)
    return f'<li><a href="#paper-{escape(paper)}">{escape(_source(members))}</a>{bullets(lines)}</li>'


def _source(members: Sequence[Section]) -> str:
    return members[0].study.experiment.origin


def _paper(paper: str, members: Sequence[Section]) -> str:
    head = f'<section id="paper-{escape(paper)}"><h2>{escape(_source(members))}</h2>'
    return f"{head}{''.join(map(_experiment, members))}</section>"


def _experiment(section: Section) -> str:
    """Everything about one experiment."""
    study, name = section.study, escape(section.name)
    seed = f" · seed {study.seed}" if study.seed else ""
    source = f"{section.name} · {study.profile} profile{seed}"
    head = (
        f'<article id="{name}"><h3><a href="#{name}">{escape(study.experiment.title)}</a></h3>'
        f'<p class="soft">{escape(source)}</p><p class="about">{prose(study.experiment.about.strip())}</p>'
    )
    if section.problem:
        return f"{head}{_notes([section.problem])}</article>"
    labels = labels_of(study)
    parts = (_figure(section, labels), _tables(study, labels), fact_list(facts(study)), _ranks(section), _bases(study),
             _problems(study), _definitions(study, labels), _trials(study, labels))  # fmt: skip
    return f"{head}{_notes(notes(study))}{''.join(parts)}</article>"


def _figure(section: Section, labels: Labels) -> str:
    """The tools of an experiment, which change its figure and its tables, and the figure if there is one."""
    drawn = drawings(section.study) if section.drawing else {}
    metric = ""
    if len(drawn) > 1:
        metric = f'<label>Metric <select class="metric">{options(list(drawn), labels)}</select></label>'
    tools = (
        f'<label>Filter rows <input class="filter" type="search" autocomplete="off" spellcheck="false"></label>{metric}'
        '<label><input class="exactly" type="checkbox"> Exact names</label><output class="count"></output>'
    )
    switched = _switches(drawn) if drawn else ""
    return f'<div class="tools">{tools}</div>{switched}'


def _switches(drawn: dict[str, Drawing]) -> str:
    """The legend of a figure as switches, the figure, and what it draws as JSON."""
    keys = keys_of(drawn.values())
    every = '<button type="button" class="every">all</button><button type="button" class="none">none</button>'
    figures = {label: figure_of(one, keys) for label, one in drawn.items()}
    panels = max(len(one.panels) for one in drawn.values())
    height = max(map(height_of, drawn.values()))
    return (
        f'<fieldset class="switches"><legend>Solvers and lines</legend>{switches(keys.values())}{every}</fieldset>'
        f'<div class="figure" role="img" data-panels="{panels}" data-height="{height:g}"></div>'
        f'<p class="soft caption">{escape(caption(next(iter(drawn.values()))))}</p>'
        f'<script type="application/json" class="figures">{_script_safe(figures)}</script>'
    )


def _tables(study: Study, labels: Labels) -> str:
    """The costs and the published numbers beside the measured ones, where there are any, and everything measured."""
    published = published_sheet(study)
    title = study.experiment.title
    parts = [("published", "Measured beside published", published), ("all", "All measurements", sheet(study))]
    tables = [
        f'<div class="{kind}"><h4>{head}</h4>{table(one, f"{title}: {head}", labels)}</div>'
        for kind, head, one in parts
        if one
    ]
    costs = (
        f'<div class="costs"><h4>{one.title}</h4>{table(one.sheet, f"{title}: {one.title}", labels)}'
        f'<p class="soft">{prose(one.legend)}</p></div>'
        for one in cost_tables(study)
    )
    if text := study.experiment.differences.strip():
        tables.insert(1, f'<h4>{study.experiment.differences_title}</h4><div class="about">{blocks(text)}</div>')
    return "".join([*costs, *tables])


def _notes(lines: Iterable[str]) -> str:
    listed = [prose(line) for line in lines]
    return f'<ul class="notes">{"".join(f"<li>{line}</li>" for line in listed)}</ul>' if listed else ""


def _problems(study: Study) -> str:
    """The list of skipped parts and of cells that did not end well."""
    lines = [escape(line) for line in skip_lines(study.skips)]
    for entry in study.entries:
        if entry.status not in ("ok", "pending"):
            lines.append(f"{escape(entry.cell.label)}: <b>{escape(entry.status)}</b>, {escape(entry.reason)}")
    return folded("Left out or failed", bullets(lines), open_=True) if lines else ""


def _ranks(section: Section) -> str:
    """The average ranks of the solvers over data sets, where there are enough, in words and as a diagram."""
    if not section.ranks:
        return ""
    picture = b64encode(ranks_svg(section.ranks).encode()).decode()
    text = escape(section.ranks.text)
    return (
        f'<h4>Average ranks over data sets</h4><p class="lead">{text}</p>'
        f'<img class="ranks" alt="Critical-difference diagram. {text}" src="data:image/svg+xml;base64,{picture}">'
    )


def _bases(study: Study) -> str:
    """Lists of the strongest features of each basic ranking function."""
    return "".join(
        folded(f"Basic ranking functions of {basis.solver} on {basis.data}",
               bullets(map(escape, described_basis(basis))))
        for basis in bases(study)
    )  # fmt: skip


def _trials(study: Study, labels: Labels) -> str:
    if not study.trials:
        return ""
    title = f"All trials of the tuning ({len(study.trials)})"
    return folded(title, table(trial_sheet(trials(study)), title, labels))


def _definitions(study: Study, labels: Labels) -> str:
    entries = "".join(
        f"<dt>{escape(labels[one.label])} <code>{breakable(one.label)}</code></dt><dd>{escape(one.formula)}</dd>"
        for one in study.measures
    )
    rules = "".join(f"<p>{prose(text)}</p>" for text in (RULES, *([VERDICTS] if evidence(study) else [])))
    return folded("How the metrics are defined", f"<dl>{entries}</dl>{rules}")


def _machines(studies: Sequence[Study]) -> Sheet:
    """The table of machines: a line for each machine and set of versions, with the date of its last result."""
    results = sorted((result for study in studies for result in study.results), key=lambda result: result.finished)
    found = {result.machine: result for result in results}
    headings = (*_MACHINE, "rankbench", "commit", "kernels", "last result")
    return Sheet(headings, (False,) * len(headings), tuple(map(_machine, found.values())), frozenset())


def _machine(result: Result) -> tuple[str, ...]:
    of = result.machine
    values = (of.fingerprint, of.basis, of.cpu, of.usable_cores, of.memory_gib, ", ".join(of.blas), of.compiler)
    versions = (of.python, *map(of.version, ("numpy", "scipy", "rankbench")), of.git or "", of.kernels)
    return tuple(map(str, (*values, *versions, result.finished[:10])))


def _script_safe(value: object) -> str:
    """JSON that is safe inside an HTML script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
