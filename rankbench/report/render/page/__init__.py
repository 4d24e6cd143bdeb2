"""The HTML pages of the report: one that opens with the answer, and one for each paper; they need no network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plotly.offline import get_plotlyjs

from rankbench.core.texts import address
from rankbench.report.analysis.verdicts import added, in_words, score_sheet
from rankbench.report.pieces import piece_of
from rankbench.report.render.labels import counted
from rankbench.report.render.page.markup import part, templates
from rankbench.report.render.tables import Sheet
from rankbench.report.sections import Piece, Section, by_paper, machines

PLOTLY = "rankbench-plotly.js"  # the plotting script, once beside the pages
_MACHINE = ("fingerprint", "basis", "processor", "cores", "memory GiB", "BLAS", "compiler", "Python", "NumPy", "SciPy",
            "rankbench", "commit", "kernels", "last result")  # fmt: skip
Papers = Mapping[str, Sequence[Piece]]


@dataclass(frozen=True)
class _Part:
    """A paper on a page: where it is, and what stands before an experiment's name in a link to it."""

    name: str
    pieces: Sequence[Piece]
    link: str
    before: str
    count: str = ""

    @property
    def title(self) -> str:
        """What the paper is called."""
        return self.pieces[0].origin


def page(sections: Sequence[Section]) -> str:
    """One HTML page about these experiments, with everything in it."""
    return _page(by_paper([piece_of(section) for section in sections]), plotly=get_plotlyjs())


def pages(pieces: Sequence[Piece]) -> dict[str, str]:
    """The HTML pages of a report by file name: one if there is one paper, else a page for each and one before them."""
    papers = by_paper(pieces)
    if len(papers) == 1:
        return {"index.html": _page(papers, plotly=get_plotlyjs())}
    behind = {page_of(paper): _page({paper: members}, members[0].origin) for paper, members in papers.items()}
    return {"index.html": _front(papers), **behind, PLOTLY: get_plotlyjs()}


def page_of(paper: str) -> str:
    """The file name of a paper's page."""
    return f"{paper}.html" if paper.lower() != "index" else "index-1.html"


def _front(papers: Papers) -> str:
    """The first of several pages: what is measured as counts, and a link to the page of each paper."""
    parts = []
    for paper, members in papers.items():
        link = address(page_of(paper))
        parts.append(_Part(paper, members, link, f"{link}#", _summary(members)))
    return _rendered(parts)


def _page(papers: Papers, title: str = "", plotly: str = "") -> str:
    """A page with everything about the experiments of these papers."""
    parts = [_Part(paper, members, f"#paper-{address(paper)}", "#") for paper, members in papers.items()]
    return _rendered(parts, parts, title, plotly)


def _rendered(papers: Sequence[_Part], articles: Sequence[_Part] = (), title: str = "", plotly: str = "") -> str:
    """A page with links to all papers and the articles of some."""
    pieces = [piece for one in papers for piece in one.pieces]
    scores = added(piece.score for piece in pieces)
    template = templates().get_template("page.html")
    return template.render(
        title=title,
        style=part("page.css"),
        script=part("page.js"),
        plotly=plotly,
        plotly_file=PLOTLY,
        summary=_summary(pieces),
        scores=score_sheet(scores) if scores else None,
        in_words=in_words(scores) if scores else "",
        links={one.title: one.link for one in papers},
        papers=papers,
        articles=articles,
        experiments=len(pieces),
        is_answer=len(pieces) == 1 and pieces[0].answer != "",
        machines=_machines(pieces),
    )


def _summary(pieces: Sequence[Piece]) -> str:
    good, cells = sum(one.good for one in pieces), sum(one.cells for one in pieces)
    return f"{counted(len(pieces), 'experiment')}, {good} of {cells} cells ended well."


def _machines(pieces: Sequence[Piece]) -> Sheet:
    """The table of machines: a line for each machine and set of versions, with the date of its last result."""
    uses = sorted(machines(pieces), key=lambda use: use.first)
    return Sheet(_MACHINE, (False,) * len(_MACHINE), tuple((*use.row, use.last[:10]) for use in uses))
