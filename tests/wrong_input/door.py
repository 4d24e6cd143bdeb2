"""The door that wrong input comes through: the command line, which must answer with one line and exit code 2."""

from helpers import rankbench


def refused(monkeypatch, capsys, *arguments: str) -> str:
    """The one line with which the command line refuses these arguments."""
    assert rankbench(monkeypatch, *arguments) == 2
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert printed.err.startswith("rankbench: ") and printed.err.count("\n") == 1
    assert printed.err[:-1].isprintable() and len(printed.err) < 10_000 and printed.out == ""
    return printed.err
