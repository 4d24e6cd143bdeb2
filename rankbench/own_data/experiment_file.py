"""The experiment file of a comparison on a user's own data: a commented TOML text, which `rankbench run` takes."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from textwrap import wrap

from rankbench import experiments
from rankbench.core.texts import file_part
from rankbench.experiments import Experiment
from rankbench.experiments.spaces import Range
from rankbench.names import without_folder
from rankbench.own_data.choosing import PATIENCE, STEPS, Choice
from rankbench.planning.widening import ROUNDS

_WIDTH = 100
_LONGEST = 60  # letters of an experiment's name


def name_of(choice: Choice) -> str:
    """The experiment's name, after the file and what was written in its brackets.

    `on-ratings` for csv:data/ratings.csv, and `on-ratings-features-items-csv` with [features=items.csv].
    """
    short = without_folder(choice.data.name).rpartition(":")[2]
    given = (f"{name}-{without_folder(str(value))}" for name, value in choice.data.given if name != "path")
    named = "-".join([short.partition(".")[0] or "data", *given])
    text = f"on-{file_part(named, kept='')}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}-{sha256(named.encode()).hexdigest()[:8]}"


def experiment_of(choice: Choice) -> Experiment:
    """The experiment that the file of this choice describes, read as any other experiment file."""
    name = name_of(choice)
    return experiments.read(name, f"{name}.toml", text_of(choice))


def text_of(choice: Choice) -> str:
    """The text of the experiment file, with a comment above each choice that says why."""
    parts = (_head(choice), _rows(choice), _solvers(choice), _budget(choice), _margin(choice), _tuning(choice))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(choice: Choice) -> Iterator[str]:
    run = f"rankbench run {name_of(choice)}.toml"
    yield from _comment(f"A comparison on {choice.data.written}, as `rankbench on` runs it. Change it, and: {run}")
    yield from _comment("CONTRIBUTING.md, under «An experiment», has every key. Add paper if this reproduces one.")
    yield ""
    yield f"title = {_text(f'Solvers on {without_folder(choice.data.written)}')}"
    yield f"about = {_text(f'{choice.facts.text}. {_sentence(choice.protocol.why)}')}"


def _rows(choice: Choice) -> Iterator[str]:
    yield ""
    yield from _comment("`rankbench list datasets` has other kinds; settings in brackets say which column is which.")
    yield f"data = {_list([choice.data.written])}"
    yield ""
    yield from _comment(f"{_sentence(choice.protocol.why)} Others: rankbench list splits, rankbench check FILE.")
    yield f"splits = {_list([choice.protocol.split])}"
    yield f"repetitions = {choice.repetitions}"
    yield ""
    yield from _comment("The first one decides; `rankbench list METRIC` has the definition.")
    yield f"metrics = {_list(choice.protocol.metrics)}"


def _solvers(choice: Choice) -> Iterator[str]:
    yield ""
    floor = "The first ones are the floor: what does not beat them has learned nothing about single users."
    yield from _comment(f'{floor} Your own: "path/to/file.py:Class".')
    for line in choice.left_out:
        yield from _comment(f"Left out: {line}.")
    yield f"solvers = {_list(choice.solvers)}"


def _budget(choice: Choice) -> Iterator[str]:
    yield ""
    if choice.is_tuned:
        ends = f"A trial ends after {PATIENCE} steps without a better value, and at the latest after {STEPS}."
        yield from _comment(f"{ends} The last training takes as many steps as the best trial took to its best value.")
    else:
        yield from _comment("Every training takes this many steps, unless the solver ends before.")
    yield "[budget]"
    yield f"steps = {STEPS}"
    if choice.is_tuned:
        yield f"patience = {PATIENCE}"


def _margin(choice: Choice) -> Iterator[str]:
    if choice.margin is None:
        return
    yield ""
    yield from _comment("Solvers that differ by less are equal. Without it the margin is a hundredth of the best mean.")
    yield "[margins]"
    yield f"{_text(choice.protocol.metrics[0])} = {choice.margin!r}"


def _tuning(choice: Choice) -> Iterator[str]:
    if not choice.is_tuned:
        return
    yield ""
    yield from _comment("Every solver gets this many trials on the same validation part, evenly spread over its space.")
    beyond = "While the best value of a setting is the outermost one that was tried, one more beyond it is tried."
    yield from _comment(f"The best trial's settings are used. {beyond} A solver without a space has nothing to tune.")
    yield "[tune]"
    yield f"trials = {choice.trials}"
    yield 'draws = "sobol"'
    yield f"widen = {ROUNDS}"
    yield f"validation = {_text(choice.protocol.validation)}"
    for solver, space in choice.spaces.items():
        yield ""
        yield f"[tune.space.{_text(without_folder(solver))}]"
        yield from (f"{name} = {_range(values)}" for name, values in space.items())


def _comment(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _sentence(text: str) -> str:
    """A clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def _range(values: Range) -> str:
    """A range as a table."""
    return f'{{ low = {values.low!r}, high = {values.high!r}, scale = "{values.scale}" }}'


def _text(text: str) -> str:
    """A text as TOML writes it; JSON escapes the same characters, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"
