"""How the measured numbers compare with the published ones: one line per paper, and the sum of all papers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from rankbench.records.studies import Study
from rankbench.report.analysis.verdicts import finding
from rankbench.report.render.tables import Sheet
from rankbench.report.rows import Row, rows

TOTAL = "all papers"


@dataclass(frozen=True)
class Score:
    """The published numbers of a paper, counted by what the measured numbers beside them say: see `Finding`."""

    paper: str
    published: int = 0
    agrees: int = 0
    higher: int = 0
    lower: int = 0
    untold: int = 0
    variant: int = 0
    smaller: int = 0
    elsewhere: int = 0
    missing: int = 0

    def __add__(self, other: "Score") -> "Score":
        """The counts of both, under the name of this one."""
        counts = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "paper"}
        return Score(self.paper, **counts)


_HEADINGS = {
    "published": "published",
    "agrees": "agrees",
    "higher": "higher",
    "lower": "lower",
    "untold": "cannot be told",
    "variant": "of variants",
    "smaller": "at a smaller size",
    "elsewhere": "on other data",
    "missing": "not measured",
}


def scoreboard(studies: Iterable[Study]) -> list[Score]:
    """The score of each paper that published a number, then their sum; empty where no number is published."""
    return added(map(score_of, studies))


def score_of(study: Study) -> Score | None:
    """The score of an experiment, under the name of its paper; None where no number is published."""
    scores = [_of_row(study, row) for row in rows(study) if row.published is not None]
    return sum(scores, Score(study.experiment.origin)) if scores else None


def added(scores: Iterable[Score | None]) -> list[Score]:
    """The scores by paper, then their sum; empty where there are none."""
    found: dict[str, Score] = {}
    for score in filter(None, scores):
        found[score.paper] = found.get(score.paper, Score(score.paper)) + score
    return [*found.values(), sum(found.values(), Score(TOTAL))] if found else []


def score_sheet(scores: Sequence[Score]) -> Sheet:
    """The scores as a table; columns in which nothing is counted are left out."""
    shown = [name for name in _HEADINGS if name == "published" or any(getattr(score, name) for score in scores)]
    return Sheet(
        headings=("paper", *(_HEADINGS[name] for name in shown)),
        numeric=(False, *(True for _ in shown)),
        lines=tuple((score.paper, *(str(getattr(score, name)) for name in shown)) for score in scores),
        best=frozenset(),
    )


def in_words(scores: Sequence[Score]) -> str:
    """The sum of the scores in one sentence."""
    total = scores[-1]
    judged = total.agrees + total.higher + total.lower + total.untold
    rest = {
        "at a smaller size than the papers'": total.smaller,
        "on other data": total.elsewhere,
        "beside variants of a reproduction": total.variant,
        "not measured": total.missing,
    }
    parts = [f"{count} {what}" for what, count in rest.items() if count]
    if judged:
        own = f"{total.agrees} agree within the spreads of both, {total.higher} higher, {total.lower} lower"
        own += f", {total.untold} cannot be told" if total.untold else ""
        parts.insert(0, f"{judged} on the papers' own data at their own size ({own})")
    return f"{total.published} published numbers: {', '.join(parts)}."


def _of_row(study: Study, row: Row) -> Score:
    """The score of one published number."""
    return Score("", 1, **{finding(study, row).name.lower(): 1})
