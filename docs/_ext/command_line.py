"""The directive `{commands}`: the reference of the command line, made from the application itself."""

from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from rankbench.cli.app import app as application

EXAMPLE = "Example: "


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group with its whole name, groups themselves left out."""
    for own, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {own}")
        else:
            yield f"{name} {own}", command


def placeholder(parameter: Any) -> str:
    """What stands for the value of a parameter."""
    return str(parameter.metavar or parameter.name.upper())


def row(shown: str, parameter: Any) -> str:
    """A row of a table of Markdown, in which a bar ends a cell."""
    return " | ".join(["", *(text.replace("|", r"\|") for text in (shown, meaning(parameter))), ""]).strip()


def usage(name: str, command: Any) -> str:
    """The line that shows how a command is called."""
    arguments = [placeholder(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join([name, *arguments, "[OPTIONS]"])


def written(option: Any) -> str:
    """An option with its other names and what it takes."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return names if option.is_flag else f"{names} `{placeholder(option)}`"


def meaning(option: Any) -> str:
    """The help of an option, with its default if it says something."""
    text = option.help or ""
    told = option.default not in (None, False, "", (), []) and not callable(option.default) and not option.is_flag
    return f"{text} Default: `{option.default}`." if told else text


def page(name: str, command: Any) -> Iterator[str]:
    """The lines of Markdown about a command."""
    yield from (f"## {name}", "")
    about = [line.strip() for line in (command.help or "").splitlines()]
    yield from ("" if line.startswith(EXAMPLE) else line for line in about)
    examples = [line.removeprefix(EXAMPLE) for line in about if line.startswith(EXAMPLE)]
    yield from ("", "```text", usage(name, command), "```", "")
    if examples:
        yield from ("For example:", "", "```sh", *examples, "```", "")
    told = [one for one in command.params if one.param_type_name == "argument" and one.help]
    options = [one for one in command.params if one.param_type_name == "option"]
    yield from ("| option | meaning |", "|---|---|") if told or options else ()
    yield from (row(f"`{placeholder(one)}`", one) for one in told)
    yield from (row(written(one), one) for one in options)
    yield ""


class Commands(Directive):
    """Writes a section for each command."""

    def run(self) -> list[nodes.Node]:
        """The sections, parsed as the Markdown of the page is."""
        group = typer.main.get_command(application)
        lines = [line for name, command in commands(group, "rankbench") for line in page(name, command)]
        here = nodes.Element()
        self.state.nested_parse(StringList(lines, source="the command line"), self.content_offset, here, match_titles=1)
        return here.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx."""
    app.add_directive("commands", Commands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
