"""What a report says about one experiment, as a list of blocks: made once, and written in every form."""

from collections.abc import Iterator
from functools import partial

from rankbench.core.texts import safe
from rankbench.records.cells import skip_lines
from rankbench.records.studies import Study
from rankbench.report.analysis.ranks import ranks_svg
from rankbench.report.analysis.rivals import losses
from rankbench.report.analysis.trials import trial_sheet, trials
from rankbench.report.analysis.variance import LEGEND, share_sheet, shares_of
from rankbench.report.analysis.verdicts import published_sheet
from rankbench.report.asked import asked_tables
from rankbench.report.render.answer import answer, answer_sheet
from rankbench.report.render.blocks import (
    Block,
    Chart,
    Definitions,
    Facts,
    Heading,
    Notes,
    Picture,
    Problems,
    Prose,
    Table,
)
from rankbench.report.render.facts import facts
from rankbench.report.render.figures.series import drawings
from rankbench.report.render.ranking_functions import bases, described, examples
from rankbench.report.render.tables import definitions, notes, sheet
from rankbench.report.sections import Section
from rankbench.report.study import redrawn

_MANY = 60  # trials that a page does not list


def outline(section: Section) -> list[Block]:
    """Everything that a report says about an experiment, in the order of reading."""
    study = section.study
    experiment = study.experiment
    run = (f"{study.profile} profile", *([f"seed {study.seed}"] if study.seed else []))
    head, about = Heading(section.name, experiment.title, run), Prose(experiment.about.strip())
    if section.problem:
        return [head, about, Problems((), (section.problem,), ())]
    found: list[Block] = [head, *_answer_blocks(study), *_losses(study), about, Notes(tuple(notes(study)))]
    found.append(Chart(experiment.title, f"figures/{section.name}.png", drawings(study) if section.drawing else {}))
    found += [*_tables(section.name, study), Facts(tuple(facts(study))), *_pictures(section), _problems(study)]
    found.append(Definitions(tuple(definitions(study))))
    if study.trials:
        found.append(_trials(section.name, study))
    return found


def _trials(name: str, study: Study) -> Block:
    """All trials of the tuning, or where many of them are."""
    number = len(study.trials)
    if number > _MANY:
        file, command = f"tables/{name}-trials.csv.gz", f"rankbench table {name} --what trials"
        return Prose(f"All {number:,} trials of the tuning are in `{file}`; `{command}` lists them.")
    return Table(f"All trials of the tuning ({number})", trial_sheet(trials(study)), "trials", folded=True)


def answer_of(study: Study) -> str:
    """Which solver is best, in a sentence: of an experiment of one's own in one place, else empty."""
    experiment, places = study.experiment, {(group.place.data, group.place.split) for group in study.groups}
    varied = len(experiment.threads) > 1 or experiment.figure.is_of_costs
    return "" if experiment.paper or len(places) != 1 or varied else f"{safe(answer(study))}."


def _answer_blocks(study: Study) -> list[Block]:
    """Which solver is best, in a sentence and a table, where there is an answer."""
    text = answer_of(study)
    return [Prose(text), Table("From best to worst", answer_sheet(study), "answer")] if text else []


def _losses(study: Study) -> list[Block]:
    """Where our solvers are behind those of other packages, of an experiment that compares them."""
    text = losses(study)
    return [Prose(text, "Where rankbench is behind, by the means (a table below has their intervals)")] if text else []


def _tables(name: str, study: Study) -> Iterator[Block]:
    """The costs and the published numbers beside the measured ones, where there are any, and everything measured."""
    experiment = study.experiment
    for costs in asked_tables(study):
        yield Table(costs.title, costs.sheet, "costs", costs.legend)
    if redrawn(study) and (shares := shares_of(study)):
        yield Table("Where the variance comes from", share_sheet(shares), "variance", LEGEND)
    if published := published_sheet(study):
        yield Table("Measured beside published", published, "published")
    if experiment.differences.strip():
        yield Prose(experiment.differences.strip(), experiment.differences_title)
    if experiment.figure.kind == "growth":
        file, command = f"tables/{name}.csv", f"rankbench table {study.name}"
        yield Prose(f"All measurements are in `{file}`; `{command}` lists them.")
    else:
        yield Table("All measurements", sheet(study))


def _pictures(section: Section) -> Iterator[Block]:
    """The average ranks of the solvers over data sets, and the strongest features of basic ranking functions."""
    if ranked := section.ranks:
        file = f"figures/{section.name}-ranks.png"
        alternative = "Critical-difference diagram"
        yield Picture("Average ranks over data sets", file, alternative, (ranked.text,), partial(ranks_svg, ranked))
    shown, count = examples(section.study), len(bases(section.study))
    more = f"`rankbench report {section.name} --columns 1,2,3` draws all {count}, other settings and data sets too"
    if shown:
        words = (*(line for basis in shown for line in described(basis)), *([more] if count > len(shown) else []))
        title = "Basic ranking functions"
        yield Picture(title, f"figures/{section.name}-basis.png", title, words)


def _problems(study: Study) -> Problems:
    """What was skipped, what is broken, and the cells that did not end well."""
    skipped, failed = (skip_lines(skip for skip in study.skips if skip.failed == broken) for broken in (False, True))
    bad = (entry for entry in study.entries if entry.status not in ("ok", "pending"))
    cells = tuple((entry.cell.label, entry.status, entry.reason) for entry in bad)
    return Problems(tuple(skipped), tuple(failed), cells)
