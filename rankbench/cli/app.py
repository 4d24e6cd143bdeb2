"""The command-line application with all commands, and its entry point `main`."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from rankbench import __version__
from rankbench.cli import checking, data_verbs, looking, own, running, sharing
from rankbench.cli.opening import temporary_folders
from rankbench.cli.process import FAILED, INTERRUPTED, USAGE, discard, outlive_readers
from rankbench.core.errors import UserError
from rankbench.core.lines import complain, show

_HELP = """Fast solvers for learning to rank from preferences, and a harness that reproduces the papers' numbers.

Example: rankbench run all"""
_NO_FORK = "this system has no fork, by which trainings get processes of their own: take Linux, macOS or WSL"
_REPEATED = 0.05  # seconds after which a Ctrl-C that was lost is repeated
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # ClickException, wherever this typer keeps it


def _show_version(asked: bool) -> None:
    """Print the name and version, and end the program."""
    if asked:
        show(f"rankbench {__version__}")
        raise typer.Exit()


def _of_package(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


_NEW_OBJECTS = 100_000  # between two looks for garbage: thousands of results are read, and hardly any of it is garbage

_VERBS: dict[str, Callable[..., None]] = {  # in the order in which --help lists them
    "on": own.on,
    "init": own.init,
    "judge": own.judge,
    "rank": own.rank,
    "check": checking.check,
    "run": running.run,
    "tune": running.tune,
    "verify": running.verify,
    "list": looking.list_names,
    "status": looking.status,
    "report": looking.report,
    "table": looking.table,
    "compare": looking.compare,
    "doctor": looking.doctor,
    "merge": sharing.merge,
    "archive": sharing.archive,
    "model": sharing.model,
    "recommend": sharing.recommend,
}
app = typer.Typer(help=_HELP, rich_markup_mode=None, pretty_exceptions_enable=False)
app.callback()(_of_package)
for name, verb in _VERBS.items():
    app.command(name)(verb)
app.add_typer(data_verbs.app, name="data")


@cache
def _command() -> Any:
    """All commands as click knows them, which takes 25 ms to make; who calls `main` again, as tests do, has them."""
    command: Any = typer.main.get_command(app)
    command.make_context, command.invoke = _stoppable(command.make_context), _stoppable(command.invoke)
    return command


def _stoppable(act: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but Ctrl-C in it is an abort: some versions of typer end by Ctrl-C and print nothing."""

    def stoppable(*arguments: Any, **options: Any) -> Any:
        try:
            return act(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Abort from None

    return stoppable


def main() -> None:
    """Run the command line; a user's mistake prints one line on stderr, without a traceback, and exits with 2."""
    outlive_readers()
    gc.set_threshold(_NEW_OBJECTS)
    if sys.unraisablehook is sys.__unraisablehook__:  # else somebody else listens, such as a test
        sys.unraisablehook = repeat_lost_interrupt
    try:
        with temporary_folders():
            code = _command()(sys.argv[1:] or ["--help"], prog_name="rankbench", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        _leave(str(error), USAGE)
    except _USAGE_ERROR as error:
        _leave(error.format_message(), USAGE)
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped", INTERRUPTED)
    except ImportError:
        if hasattr(os, "fork"):
            raise
        _leave(_NO_FORK, FAILED)
    except OSError as error:
        discard(1)  # what is left of standard output would raise the same error once more when Python ends
        _leave(_of_system(error), FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def repeat_lost_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came while Python destroyed an object, where no exception can leave and it would be lost."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(_REPEATED, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)


def _of_system(error: OSError) -> str:
    """An error of the operating system in words; without a file it is most likely one of standard output."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; nothing that was stored before is lost"


def _leave(message: str, code: int) -> NoReturn:
    complain(message)
    sys.exit(code)
