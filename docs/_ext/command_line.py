"""A page for each command, made from the application itself, and the directive `{commands}` that lists the pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rankbench.cli.app import app as application

EXAMPLE = "Example: "
ROOM = "reference/commands"  # beside the pages of autosummary, which are made too
VERBS: dict[str, Any] = typer.main.get_command(application).commands


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


def section(name: str, command: Any, level: int = 1) -> Iterator[str]:
    """The lines of Markdown about a command."""
    yield from (f"{'#' * level} {name}", "")
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


def page(verb: str) -> str:
    """The page of a verb, with a section for each command below it."""
    group = VERBS[verb]
    below = commands(group, f"rankbench {verb}") if hasattr(group, "commands") else ()
    lines = [*section(f"rankbench {verb}", group), *(line for name, one in below for line in section(name, one, 2))]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    """Write the pages, each only if it changed, so that Sphinx does not read it again."""
    room = Path(app.srcdir, ROOM)
    room.mkdir(parents=True, exist_ok=True)
    for verb in VERBS:
        path, text = room / f"{verb}.md", page(verb)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


class Commands(SphinxDirective):
    """Lists the pages of the commands, and links the first words of each row of the table above to them."""

    def run(self) -> list[nodes.Node]:
        """The list, parsed as the Markdown of the page is."""
        pages = [f"rankbench {verb} </{ROOM}/{verb}>" for verb in VERBS]
        return self.parse_text_to_nodes("\n".join(["```{toctree}", ":maxdepth: 1", "", *pages, "```"]))


def link_verbs(app: Sphinx, tree: nodes.document) -> None:
    """Link each `rankbench VERB` of the page of commands to the verb's own page."""
    if app.env.docname != "commands":
        return
    for literal in list(tree.findall(nodes.literal)):
        verb = literal.astext().removeprefix("rankbench ").split(" ")[0]
        if literal.astext().startswith("rankbench ") and verb in VERBS:
            link = nodes.reference("", "", internal=True, refuri=f"{ROOM}/{verb}.html")
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx."""
    app.add_directive("commands", Commands)
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", link_verbs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
