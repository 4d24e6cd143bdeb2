"""What a terminal shows: a drawn table, and bars of runs and downloads."""

import io

import pytest
from helpers import made_up, tiny
from rich.console import Console

from rankbench.api.terminal import Terminal
from rankbench.cli import printer
from rankbench.execution.run import Event
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.claims import Holder
from rankbench.report.render.tables import Sheet


@pytest.fixture
def terminal(monkeypatch):
    """What is printed on a terminal of 300 columns."""
    text = io.StringIO()

    def console(stderr=False):
        return Console(file=text, force_terminal=True, width=300, color_system=None)

    monkeypatch.setattr(printer, "Console", console)
    monkeypatch.setattr("rankbench.api.terminal.Console", console)
    return text


def test_a_table_is_drawn_with_all_its_cells(terminal, capsys):
    lines = (("sgd[rank=2]", "0.5"), ("[b]odd[/b]", "0.25"))
    printer.show_sheet("The title", Sheet(("solver", "error"), (False, True), lines, frozenset({(0, 1)})))
    drawn = terminal.getvalue()
    for text in ("The title", "solver", "error", "sgd[rank=2]", "[b]odd[/b]", "0.25"):
        assert text in drawn
    assert "| --- |" not in drawn and capsys.readouterr().out == ""


def test_a_bar_counts_the_cells_and_a_failure_stays_on_a_line(terminal):
    cells = plan(tiny(repetitions=1), Selection()).cells
    failed = made_up(cells[1], 0.5, status="failed", reason="it had [no] luck")
    with Terminal().progress("tiny", 2) as tell:
        tell(Event("start", cells[0]))
        tell(Event("end", cells[0], made_up(cells[0], 0.5)))
        tell(Event("wait", cells[1], holder=Holder("far", 7, "")))
        tell(Event("wait", cells[1]))
        tell(Event("end", cells[1], failed))
    shown = terminal.getvalue()
    assert "tiny" in shown and "2/2" in shown
    assert f"failed {cells[1].label}: it had [no] luck" in shown


def test_a_quiet_run_says_nothing_on_a_terminal(terminal):
    (cell, *_) = plan(tiny(repetitions=1), Selection()).cells
    with Terminal(quiet=True).progress("tiny", 1) as tell:
        tell(Event("start", cell))
    assert terminal.getvalue() == ""


def test_each_download_has_its_bar(terminal):
    with printer.downloads() as tell:
        for done in (0, 500, 1000):
            tell("one.zip", done, 1000)
        tell("two.zip", 10, None)
    shown = terminal.getvalue()
    assert "one.zip" in shown and "two.zip" in shown and "1.0/1.0 kB" in shown
