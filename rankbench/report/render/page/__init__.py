"""The HTML pages of the report: one that opens with the answer, and one for each paper; they need no network."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plotly.offline import get_plotlyjs

from rankbench.report.analysis.scoreboard import added, in_words, score_sheet
from rankbench.report.pieces import piece_of
from rankbench.report.render.page.markup import part, templates
from rankbench.report.render.tables import Sheet
from rankbench.report.sections import MachineUse, Piece, Section, by_paper

PLOTLY = "rankbench-plotly.js"  # the plotting script, once beside the pages
_MACHINE = ("fingerprint", "basis", "processor", "cores", "memory GiB", "BLAS", "compiler", "Python", "NumPy", "SciPy",
            "rankbench", "commit", "kernels", "last result")  # fmt: skip
Papers = Mapping[str, Sequence[Piece]]


def page(sections: Sequence[Section]) -> str:
    """One HTML page about these experiments, with everything in it."""
    return _page(by_paper([piece_of(section) for section in sections]), plotly=get_plotlyjs())


def pages(pieces: Sequence[Piece]) -> dict[str, str]:
    """The HTML pages of a report by file name: one if there is one paper, else a page for each and one before them."""
    papers = by_paper(pieces)
    if len(papers) == 1:
        return {"index.html": _page(papers, plotly=get_plotlyjs())}
    behind = {page_of(paper): _page({paper: members}, title=members[0].origin) for paper, members in papers.items()}
    return {"index.html": _front(papers), **behind, PLOTLY: get_plotlyjs()}


def page_of(paper: str) -> str:
    """The file name of a paper's page."""
    return f"{paper}.html" if paper.lower() != "index" else "index-1.html"


def _front(papers: Papers) -> str:
    """The first of several pages: what is measured as counts, and a link to the page of each paper."""
    links = {paper: page_of(paper) for paper in papers}
    return _rendered(papers, links, {name: f"{link}#" for name, link in links.items()})


def _page(papers: Papers, plotly: str = "", title: str = "") -> str:
    """A page with everything about the experiments of these papers."""
    articles = [
        {
            "name": name,
            "title": members[0].origin,
            "articles": [one.html for one in members],
            "alone": len(papers) == len(members) == 1 and members[0].answer != "",  # the page is its answer
        }
        for name, members in papers.items()
    ]
    links = {name: f"#paper-{name}" for name in papers}
    return _rendered(papers, links, dict.fromkeys(papers, "#"), articles=articles, plotly=plotly, title=title)


def _rendered(papers: Papers, links: Mapping[str, str], before: Mapping[str, str], **more: Any) -> str:
    """A page with links to papers; a link to an experiment is what stands `before` its name, and that."""
    pieces = [piece for members in papers.values() for piece in members]
    scores = added(piece.score for piece in pieces)
    answers = [{"title": one.title, "answer": one.answer, "link": f"{before[paper]}{one.name}"}
               for paper, members in papers.items() for one in members if one.answer]  # fmt: skip
    return (
        templates()
        .get_template("page.html")
        .render(
            {"articles": [], "plotly": "", "title": "", **more},
            style=part("page.css"),
            script=part("page.js"),
            plotly_file=PLOTLY,
            summary=_summary(pieces),
            answers=answers if len(pieces) > 1 else [],
            scores=score_sheet(scores) if scores else None,
            in_words=in_words(scores) if scores else "",
            links={members[0].origin: links[paper] for paper, members in papers.items()},
            papers=list(_contents(papers, links, before)),
            experiments=len(pieces),
            machines=_machines(pieces),
        )
    )


def _contents(papers: Papers, links: Mapping[str, str], before: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The table of contents: each paper with its experiments, and with counts if they are on another page."""
    for paper, members in papers.items():
        listed = [{"link": f"{before[paper]}{one.name}", "title": one.title} for one in members]
        count = _summary(members) if before[paper] != "#" else ""
        yield {"link": links[paper], "title": members[0].origin, "count": count, "experiments": listed}


def _summary(pieces: Sequence[Piece]) -> str:
    good, cells = sum(one.good for one in pieces), sum(one.cells for one in pieces)
    return f"{len(pieces)} experiment{'s'[: len(pieces) != 1]}, {good} of {cells} cells ended well."


def _machines(pieces: Sequence[Piece]) -> Sheet:
    """The table of machines: a line for each machine and set of versions, with the date of its last result."""
    found: dict[str, MachineUse] = {}
    for use in sorted((use for piece in pieces for use in piece.machines), key=lambda use: use.first):
        earlier = found.get(use.identity, use)
        found[use.identity] = max(use, earlier, key=lambda one: one.last)
    lines = tuple((*use.row, use.last[:10]) for use in found.values())
    return Sheet(_MACHINE, (False,) * len(_MACHINE), lines, frozenset())
