"""The page of differences: every published number beside the measured one, and why they differ."""

from collections.abc import Sequence

from rankbench.core.texts import markdown, markdown_prose
from rankbench.report.analysis.verdicts import published_sheet
from rankbench.report.render.tables import to_markdown
from rankbench.report.sections import Piece, Section, by_paper

_HEAD = """# Published and measured

Every published number beside the one that was measured on the paper's own data or on other data, if any was, the
difference, how large it may be by the spreads of both sides, and what follows from it. Below each table stands why
numbers differ, as far as it is known and could be tested, and what was found besides.
"""


def differences_page(pieces: Sequence[Piece]) -> str:
    """The page of differences, in Markdown, by paper and experiment."""
    lines = [_HEAD]
    for members in by_paper(pieces).values():
        if parts := [piece.differences for piece in members if piece.differences]:
            lines += [f"## {markdown(members[0].origin)}\n", *parts]
    return "\n".join(lines)


def differences(section: Section) -> str:
    """The published numbers and the reasons of one experiment, in Markdown; empty where it has neither."""
    experiment = section.study.experiment
    table = None if section.problem else published_sheet(section.study)
    text = markdown_prose(experiment.differences.strip())
    if table is None and not text:
        return ""
    head = f"### {markdown(section.name)}\n\n{markdown(experiment.title)} ({section.study.profile} profile).\n"
    return "\n".join(filter(None, [head, to_markdown(table) if table else "", f"{text}\n" if text else ""]))
