"""The verbs put together, and the console script."""

import os
import sys
from typing import Any, NoReturn

import typer

from rankbench.cli import data_verbs, looking, running
from rankbench.errors import UserError

_HELP = """Fast solvers for learning to rank from preferences, and a harness that gets the papers' numbers again.

Example: rankbench run all"""
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # ClickException, wherever this typer keeps it

app = typer.Typer(help=_HELP, rich_markup_mode=None, pretty_exceptions_enable=False)
running.add_to(app)
looking.add_to(app)
app.add_typer(data_verbs.app, name="data")


def main() -> None:
    """The console script: mistakes are one line on stderr and exit code 1, never a traceback."""
    shown = sys.stdout
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        shown.flush()
    except UserError as error:
        _leave(str(error), 1)
    except _USAGE_ERROR as error:
        _leave(error.format_message(), 1)
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped", 130)
    except BrokenPipeError:
        _leave_quietly()
    except SystemExit:
        if sys.stdout is shown:
            raise
        _leave_quietly()  # typer found the pipe closed, and put something else in its place
    sys.exit(code if isinstance(code, int) else 0)


def _leave_quietly() -> NoReturn:
    """Whoever read our output has had enough: nothing is wrong, and what is left of it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _leave(message: str, code: int) -> NoReturn:
    from rankbench.cli.printer import complain  # noqa: PLC0415  --help must answer at once

    complain(message)
    sys.exit(code)
