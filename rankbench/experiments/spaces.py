"""Search spaces: the values that tuning may try for each setting of a solver, and the candidates that it tries.

Every solver of an experiment gets the same number of trials. A solver with a smaller search space gets one
trial for each setting in it, and a solver with nothing to tune gets none.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import exp, isfinite, log, prod
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from rankbench.core.errors import UserError, placed, refuse_unknown, unknown
from rankbench.data.splits import VALIDATIONS
from rankbench.metrics import metric
from rankbench.names import TRIALS, Checked, Limits, build, parse, show, show_value, without_folder
from rankbench.solvers import SOLVERS

_DIMENSIONS = 8  # of a Sobol sequence; the first ones are used
_PATIENCE = 1000  # stop drawing after this many repeated candidates in a row


@dataclass(frozen=True)
class Range(Checked):
    """A range of numbers from low to high on a linear or log scale; integers if the setting is an integer."""

    low: Any
    high: Any
    scale: Literal["linear", "log"] = "linear"
    points: Annotated[int, Limits(low=2, high=TRIALS.high)] | None = None  # number of grid points

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not isfinite(bound):
                raise UserError(f"{name}={bound} must be a number")
        if not self.low < self.high:
            raise UserError(f"low={show_value(self.low)} must be below high={show_value(self.high)}")
        if self.scale == "log" and self.low <= 0:
            raise UserError(f"low={show_value(self.low)} must be above 0 on a log scale")

    @property
    def whole(self) -> bool:
        """Whether the range has only integers."""
        return isinstance(self.low, int)

    @property
    def size(self) -> float:
        """How many values the range has."""
        return self.high - self.low + 1 if self.whole else float("inf")

    def every(self) -> tuple[Any, ...]:
        """All integers of the range."""
        return tuple(range(self.low, self.high + 1))

    def grid(self) -> tuple[Any, ...]:
        """`points` values from low to high."""
        if self.points is None:
            raise UserError("a grid needs a number of points: { low = 1, high = 1000, points = 4 }")
        shares = [index / (self.points - 1) for index in range(self.points)]
        values = tuple(self.rounded(self._at(share, self.low, self.high)) for share in shares)
        if len(set(values)) < len(values):
            raise UserError(f"points={self.points} gives a value twice: use fewer points")
        return values

    def draw(self, rng: np.random.Generator) -> Any:
        """A random value, uniform on the range's scale."""
        return self.at(rng.random())

    def at(self, share: float) -> Any:
        """The value at this share of the way, from 0 to 1, on the range's scale."""
        margin = 0.5 if self.whole else 0.0
        return self.rounded(self._at(share, self.low - margin, self.high + margin))

    def _at(self, share: float, low: float, high: float) -> float:
        """The number at this share of the way from low to high, on the range's scale."""
        if self.scale == "log":
            return exp(log(low) + share * (log(high) - log(low)))
        return low + share * (high - low)

    def rounded(self, value: float) -> Any:
        """The value rounded to an integer or to three digits, and clipped to the range."""
        rounded = round(value) if self.whole else float(f"{value:.3g}")
        return min(max(rounded, self.low), self.high)


Values = Range | tuple[Any, ...]  # the values of one setting: a range, or a list of choices
Space = Mapping[str, Values]  # the values to try for each tuned setting


@dataclass(frozen=True)
class Tune(Checked):
    """How the solvers of an experiment are tuned: each with the same number of trials, on the same validation set."""

    space: Mapping[str, Space] = field(default_factory=dict)  # by the solver's text in the experiment, or its bare name
    method: Literal["random", "grid", "halving", "tpe"] = "random"
    trials: Annotated[int, TRIALS] = 8
    metric: str = ""  # empty: the experiment's first metric
    validation: str = "entries[test=0.2]"  # the split that cuts it from the training part; own: that of the split
    per: Literal["repetition", "split"] = "repetition"  # split: all repetitions use the choice of the first one
    draws: Literal["random", "sobol"] = "random"  # of random trials: independent, or spread evenly over the space
    eta: Annotated[int, Limits(low=2, high=10)] = 3  # of halving: one in eta trials goes on, with eta times the steps
    widen: Annotated[int, Limits(low=0, high=20)] = 0  # how many times ranges grow whose best value is the outermost

    def __post_init__(self) -> None:
        super().__post_init__()
        frozen = {solver: MappingProxyType(dict(space)) for solver, space in self.space.items()}
        object.__setattr__(self, "space", MappingProxyType(frozen))

    def space_of(self, solver: str) -> Space:
        """The search space of a solver, without the settings that are fixed in its name."""
        key = self._key(solver)
        fixed = parse(solver).settings
        return {} if key is None else {name: values for name, values in self.space[key].items() if name not in fixed}

    def candidates(self, solver: str, rng: np.random.Generator) -> list[dict[str, Any]]:
        """The settings to try for a solver, in order; a larger number of trials starts with the same ones.

        Of `tpe` only the first trials, and of `halving` those of the first rung.
        """
        space = self.space_of(solver)
        if self.method == "grid":
            axes = _axes(space, Range.grid)
            if space and (size := prod(map(len, axes.values()))) != self.trials:  # before a huge product is made
                raise UserError(f"the grid of {solver} has {size} settings, not trials={self.trials}")
            return _product(axes)
        if self.is_whole(solver):
            return _product(_axes(space, Range.every))
        return _drawn(_points(space, rng) if self.draws == "random" else _spread_points(space, rng), self.first)

    def is_whole(self, solver: str) -> bool:
        """Whether a solver's space has no more values than there are trials, so that all are tried."""
        space = self.space_of(solver).values()
        return prod(values.size if isinstance(values, Range) else len(values) for values in space) <= self.trials

    @property
    def first(self) -> int:
        """How many trials are drawn; the others of `tpe` are proposed from the results of earlier ones."""
        return max(1, self.trials // 2) if self.method == "tpe" else self.trials

    def fitted(self, solvers: Sequence[str]) -> "Tune":
        """The same with every value converted to the setting's type; a value that a solver refuses is an error."""
        VALIDATIONS.make(self.validation)
        names = {name for text in solvers for name in _names(text)}
        for written in self.space:
            if _short(written) not in names:
                raise unknown("solver in [tune.space]:", written, names)
        space: dict[str, Space] = {}
        for text in solvers:
            key = self._key(text)
            if key is None:
                name = parse(text).name
                raise UserError(f'no space for {text}: add [tune.space."{name}"], empty to tune nothing')
            space[key] = _fitted(text, self.space[key], self.method)
        found = replace(self, space=space)
        if self.widen and self.method not in ("random", "grid"):
            raise UserError(f'widen goes with method = "random" or "grid", not with "{self.method}"')
        if self.method == "grid":
            for text in solvers:
                found.candidates(text, np.random.default_rng(0))  # a grid uses no random numbers
        return found

    def _key(self, solver: str) -> str | None:
        """The key of a solver's space: the solver's full text if there is such a key, else its bare name."""
        keys = {_short(key): key for key in self.space}
        return next((keys[name] for name in _names(solver) if name in keys), None)


def read_tune(table: Mapping[str, Any]) -> Tune:
    """The tuning that the `[tune]` table of an experiment's file describes."""
    refuse_unknown("key", table, [f.name for f in fields(Tune)])
    settings = dict(table)
    spaces = settings.pop("space", {})
    if not isinstance(spaces, Mapping) or not all(isinstance(space, Mapping) for space in spaces.values()):
        raise UserError("space must hold a table for each solver: [tune.space.SOLVER]")
    if settings.get("metric"):
        settings["metric"] = metric(str(settings["metric"])).label
    space = {
        solver: {name: _values(solver, name, values) for name, values in spaces[solver].items()} for solver in spaces
    }
    return Tune(space=space, **settings)


def read_space(texts: Sequence[str]) -> Space:
    """The search space given on the command line: `lam=1..1000:log`, `rank=5|10|20`."""
    space: dict[str, Values] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not (name and equals and values):
            raise UserError(f"--space {text!r} cannot be read: write it like lam=1..1000:log or rank=5|10|20")
        if name in space:
            raise UserError(f"--space gives {name} twice: give it once")
        with placed(f"--space {text!r}", instead_of="Range"):
            space[name] = _read_range(values) if ".." in values else tuple(values.split("|"))
    return space


def _read_range(text: str) -> Range:
    bounds, _, scale = text.partition(":")
    low, _, high = bounds.partition("..")
    settings: dict[str, Any] = {"scale": scale} if scale else {}
    return Range(_number(low), _number(high), **settings)


def _number(text: str) -> int | float:
    """The number in a text: an integer if it is written as one, else a float."""
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise UserError(f"{text!r} is not a number: write a range like 1..1000:log") from None


def first_candidate(space: Space) -> dict[str, Any]:
    """The first value of every setting of a space, to make a solver before tuning has chosen values."""
    return {name: values.low if isinstance(values, Range) else values[0] for name, values in space.items()}


def described(tune: Tune, metrics: Sequence[str]) -> str:
    """How an experiment's solvers are tuned, in a sentence."""
    trials = "1 trial" if tune.trials == 1 else _said(tune)
    where = {"repetition": "each repetition's", "split": "the first repetition's"}[tune.per]
    cut = "the same split" if tune.validation == "again" else tune.validation
    wider = f"; while the best value is the outermost one tried, one more beyond it, up to {tune.widen} times"
    return (
        f"{trials} for each solver, or its whole space where that is smaller{wider if tune.widen else ''}; "
        f"the best {tune.metric or metrics[0]} on {cut} of {where} training part is chosen"
    )


def _said(tune: Tune) -> str:
    """The number and the kind of trials in words."""
    drawn = "random" if tune.draws == "random" else "evenly spread (Sobol)"
    if tune.method == "halving":
        goes_on = (
            f"one in {tune.eta} goes on with {tune.eta} times the steps, so that all cost the same number of steps"
        )
        return f"{tune.trials} {drawn} trials by successive halving ({goes_on})"
    if tune.method == "tpe":
        return f"{tune.trials} trials ({tune.first} {drawn}, then by TPE)"
    return f"{tune.trials} {'grid' if tune.method == 'grid' else drawn} trials"


def _values(solver: str, name: str, values: object) -> Values:
    """The values of a setting: a range from a table, or choices from a list."""
    with placed(f"space of {solver}: {name}", instead_of="Range"):
        if isinstance(values, Mapping):
            refuse_unknown("key", values, [f.name for f in fields(Range)])
            if missing := {"low", "high"} - set(values):
                raise UserError(f"a range needs its {min(missing)}")
            return Range(**values)
        if isinstance(values, list) and values:
            return tuple(values)
        raise UserError('write a list of choices, or a range: { low = 1, high = 1000, scale = "log" }')


def _fitted(solver: str, space: Space, method: str) -> Space:
    """A solver's space with each value converted to the setting's type and checked."""
    spec = parse(solver)
    if fixed := sorted(set(space) & set(spec.settings)):
        raise UserError(f"{solver} fixes {fixed[0]}, which its space varies: take it out of one of them")
    cls = SOLVERS.find(spec.name)
    start = {**spec.settings, **first_candidate(space)}

    def fit(name: str, value: object) -> Any:
        """The value converted to the setting's type."""
        return getattr(build(cls, {**start, name: value}, spec.name), name)

    found: dict[str, Values] = {}
    for name, values in space.items():
        ends = (values.low, values.high) if isinstance(values, Range) else values
        fitted = tuple(fit(name, value) for value in ends)
        with placed(f"space of {solver}: {name}", instead_of="Range"):
            found[name] = _fitted_range(values, fitted, method) if isinstance(values, Range) else _distinct(fitted)
    return found


def _fitted_range(values: Range, ends: tuple[Any, ...], method: str) -> Range:
    low, high = ends
    if isinstance(low, str | bool):
        raise UserError("a range needs a number setting: list the choices instead")
    if method != "grid" and values.points is not None:
        raise UserError('points needs method = "grid": leave points out')
    fitted = replace(values, low=low, high=high)
    if method == "grid":
        fitted.grid()  # raises the errors of a bad grid early
    return fitted


def _distinct(choices: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(choices)) < len(choices):
        raise UserError(f"lists a choice twice: {', '.join(map(show_value, choices))}")
    return choices


def _axes(space: Space, listed: Callable[[Range], tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """The values of each setting: its choices, or those of its range that are `listed`."""
    return {name: listed(values) if isinstance(values, Range) else values for name, values in space.items()}


def _product(axes: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """All combinations of values, with the settings in alphabetical order so that a file's order does not matter."""
    names = sorted(axes)
    return [dict(zip(names, values, strict=True)) for values in product(*(axes[name] for name in names))]


def _drawn(points: Iterator[dict[str, Any]], trials: int) -> list[dict[str, Any]]:
    """Distinct candidates of these, `trials` of them, or fewer if no new one turns up."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    repeats = 0
    while len(found) < trials and repeats < _PATIENCE:
        drawn = next(points)
        repeats = repeats + 1 if tuple(drawn.values()) in found else 0
        found.setdefault(tuple(drawn.values()), drawn)
    return list(found.values())


def _points(space: Space, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Random candidates, each independent of the others."""
    while True:
        yield {name: _draw(space[name], rng) for name in sorted(space)}


def _spread_points(space: Space, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Candidates along a scrambled Sobol sequence (Owen 1998): the first 2^m of them lie evenly in the space.

    From one state of the generator two spaces get the same shares for their first setting by name, for their second
    one, and so on.
    """
    names = sorted(space)
    # So many dimensions for every space, since SciPy's numbers in one of them depend on how many there are.
    sequence = importlib.import_module("scipy.stats.qmc").Sobol(max(len(names), _DIMENSIONS), rng=rng)
    size = 0
    while True:
        for shares in sequence.random_base2(size).tolist():
            yield {name: _at(space[name], share) for name, share in zip(names, shares, strict=False)}
        size = max(0, int(sequence.num_generated).bit_length() - 1)  # as many points again: 1, 1, 2, 4, 8, ...


def _draw(values: Values, rng: np.random.Generator) -> Any:
    return values.draw(rng) if isinstance(values, Range) else values[int(rng.integers(len(values)))]


def _at(values: Values, share: float) -> Any:
    """The value at this share of the way through a range or a list of choices."""
    return values.at(share) if isinstance(values, Range) else values[int(share * len(values))]


def _names(solver: str) -> tuple[str, str]:
    """The keys by which a space may refer to a solver: its full text and its bare name, without a file's folder."""
    text = _short(solver)
    return text, parse(text).name


def _short(solver: str) -> str:
    """A solver's text without the folder of a user's file."""
    spec = parse(solver)
    return show(without_folder(spec.name), spec.settings)
