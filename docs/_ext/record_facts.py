"""What the pages of solvers, splits and metrics take from the code: facts, settings and definitions, as Markdown.

A fact is what a record declares, or what a small training shows. So it cannot differ from what the code does.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

import rankbench
from rankbench import Step, UserError
from rankbench.cli.describe import Setting, declared, settings_in
from rankbench.core.packages import missing, needs_of
from rankbench.data.splits import SPLITS
from rankbench.execution.training import trained
from rankbench.experiments import Budget
from rankbench.metrics import METRICS
from rankbench.metrics.records import Metric
from rankbench.names import Registry
from rankbench.solvers import SOLVERS

PAGES = Path(__file__).parents[1] / "solvers"
_PROBE = "magnitudes[users=20,items=30,features=4,per_user=15]"  # what a solver is tried on
_UNSEEN = np.array([28, 29])  # its items that no training row has
_ROUNDING = 1e-12  # scores that differ by less count as equal
_DETERMINISM = {
    "exact": "exact: the same bits for any number of threads",
    "fixed-threads": "the same bits for the same number of threads",
    "racy": "racy: other bits in each run with more than one thread",
}
_FEATURES = {"needs": "needed", "ignores": "not used"}
_DIRECTIONS = {"higher": "higher is better", "lower": "lower is better"}


def solver_text(name: str, meanings: Mapping[str, str]) -> str:
    """What the code knows of a solver: its facts, and its settings with these meanings."""
    return f"{_table(('Fact', 'Value'), facts_of(name))}\n\n{settings_text(SOLVERS, name, meanings)}"


def split_text(name: str, meanings: Mapping[str, str]) -> str:
    """The settings of a split with these meanings."""
    return settings_text(SPLITS, name, meanings)


def settings_text(registry: Registry, name: str, meanings: Mapping[str, str]) -> str:
    """A table of the settings of a solver or split with these meanings; an error unless each has one."""
    known = settings_in(registry.find(name))
    if wrong := {setting.name for setting in known} ^ set(meanings):
        raise UserError(f"the page of {name} must give one meaning for each setting: see {', '.join(sorted(wrong))}")
    rows = [(f"`{one.name}` = `{one.default}`", meanings[one.name], _values(one)) for one in known]
    return _table(("Setting and default", "Meaning", "Values"), rows) if rows else "It has no settings."


def page_of(name: str) -> Path:
    """The page with the directive of this solver."""
    found = [path for path in sorted(PAGES.glob("*.md")) if f"\n```{{solver}} {name}\n" in path.read_text()]
    if len(found) != 1:
        raise UserError(f"{len(found)} pages describe the solver {name}: it must be one")
    return found[0]


def description(name: str) -> str:
    """What a solver is, in words: the paragraph of its page that stands before the directive."""
    before, _, _ = page_of(name).read_text().partition(f"\n```{{solver}} {name}\n")
    return before.strip().rpartition("\n\n")[2].replace("\n", " ")


def solvers_text(names: Sequence[str]) -> str:
    """A table of solvers, with links to their pages."""
    header = "Solver", "What it is", "Learns from; determinism"
    facts = {name: f"{_learns(name)}; {_short(name)}" for name in names}
    return _table(header, [(_link("solver", name), description(name), facts[name]) for name in names])


def metric_text(name: str) -> str:
    """The first part of a metric's section: the definition that `rankbench list` shows, and what it takes."""
    record = METRICS[name]
    low, high = (f"{limit:g}" for limit in record.limits)
    rows = [("Range", f"{low} to {high}; {_DIRECTIONS[record.better]}"), ("Cut-off", _cut(record))]
    if record.takes:
        rows.append(("Settings", ", ".join(f"`{choice}`" for choice in record.choices.split(", "))))
    return f"In words: {record.formula}.\n\n{_table(('Fact', 'Value'), rows)}"


def metrics_text(names: Sequence[str]) -> str:
    """A table of metrics, with links to their sections."""
    rows = [(_link("metric", name), METRICS[name].better, _cut(METRICS[name])) for name in names]
    return _table(("Metric", "Better", "Cut-off"), rows)


def facts_of(name: str) -> list[tuple[str, str]]:
    """The facts of a solver, each with its label; what settings change is said, too."""
    rows = [
        ("Learns from", declared(name).learns_from),
        ("Item features", _by_setting(name, lambda text: _FEATURES[declared(text).features])),
        ("Determinism", _by_setting(name, lambda text: _DETERMINISM[declared(text).determinism])),
    ]
    if extra := _extra(name):
        rows.append(("Needs", extra))
    return rows + _shown(name)


def _shown(name: str) -> list[tuple[str, str]]:
    """What a small training shows; nothing if a package is missing here."""
    if _missing(name):
        return []
    step = _step(name)
    rows = [
        ("Objective", "each step has it" if step.objective else "steps have none"),
        ("Duality gap", "each step has one" if step.gap else "steps have none"),
        ("Items without a training row", _scored(step, "items")),
        ("Users without a training row", _scored(step, "users")),
    ]
    schedules = [text for text in variants(name) if "[schedule=" in text and not _missing(text)]
    if bounded := [_changed(text) for text in schedules if _step(text).bound is not None]:
        rows.append(("Bound on the speed-up by threads", f"each step has one with {', '.join(bounded)}"))
    return rows


def variants(name: str) -> Iterator[str]:
    """The solver with each word that a setting can be while the other settings have their defaults."""
    hints = get_type_hints(SOLVERS.find(name), include_extras=True)
    for setting in settings_in(SOLVERS.find(name)):
        if get_origin(hints[setting.name]) is Literal:
            texts = (f"{name}[{setting.name}={word}]" for word in get_args(hints[setting.name]))
            yield from filter(_allowed, texts)


def _allowed(text: str) -> bool:
    """Whether a solver takes these settings; some need another one changed, too."""
    try:
        SOLVERS.make(text)
    except UserError:
        return False
    return True


def _by_setting(name: str, told: Callable[[str], str]) -> str:
    """A fact at the default settings, and each word of a setting that changes it."""
    usual = told(name)
    others = [f"{_changed(text)}: {told(text)}" for text in variants(name) if told(text) != usual]
    return "; ".join([usual, *others])


def _changed(text: str) -> str:
    """The setting in brackets after a name."""
    return f"`{text.partition('[')[2].rstrip(']')}`"


def _extra(name: str) -> str:
    """The commands that install what the solver needs, each with the setting that needs it if the default does not."""
    if command := _remedy(name):
        return f"`{command}`"
    return "; ".join(f"{_changed(text)}: `{command}`" for text in variants(name) if (command := _remedy(text)))


def _remedy(text: str) -> str | None:
    """The command that installs what the solver needs."""
    needs = needs_of(SOLVERS.make(text))
    return needs.install if needs else None


def _missing(text: str) -> str | None:
    """The command that installs what is missing here."""
    return missing(SOLVERS.make(text))


@cache
def _step(text: str) -> Step:
    """The last of a few steps on the probe, without the user 0 and the items that are to be unseen."""
    data: Any = rankbench.load(_PROBE)
    train = data.where((data.users > 0) & ~np.isin(data.items, _UNSEEN))
    found: list[Step] = []
    trained(SOLVERS.make(text), train, Budget(2, None, None), 0, tell=lambda checkpoint: found.append(checkpoint.step))
    return found[-1]


def _scored(step: Step, side: Literal["items", "users"]) -> str:
    """What becomes of items or users that training has not seen."""
    users, items = (np.arange(1, 11), _UNSEEN) if side == "items" else (np.array([0]), np.arange(20))
    table = step.model.score(np.repeat(users, len(items)), np.tile(items, len(users))).reshape(len(users), len(items))
    return _in_words(table)


def _in_words(scores: NDArray[np.float64]) -> str:
    if np.isnan(scores).all():
        return "have no score (NaN)"
    return "tie: all have one score" if np.ptp(scores, axis=1).max() < _ROUNDING else "are scored"


def _values(setting: Setting) -> str:
    """The values that a setting takes."""
    if setting.kind == "one of":
        return ", ".join(f"`{word}`" for word in setting.limits.split(", "))
    return f"{setting.kind}, {setting.limits}" if setting.limits else setting.kind


def _learns(name: str) -> str:
    """What a solver learns from, with the item features that it needs."""
    return declared(name).learns_from + (", item features" if declared(name).features == "needs" else "")


def _short(name: str) -> str:
    """The determinism in a word, with the settings that change it."""
    return _by_setting(name, lambda text: declared(text).determinism)


def _cut(record: Metric) -> str:
    if not record.cuts:
        return "none"
    return f"`@k`, without it {record.k}" if record.k else "`@k`, without it all ranks"


def _link(kind: str, name: str) -> str:
    return f"{{ref}}`{name} <{kind}-{name}>`"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def sources_of(name: str) -> list[str]:
    """The files of the code on which the facts of a solver depend."""
    return [inspect.getfile(thing) for thing in (SOLVERS.find(name), declared)]
