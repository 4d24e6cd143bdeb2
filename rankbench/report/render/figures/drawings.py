"""What a figure shows, as records: panels of named lines with their spread, whatever library draws them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

BOUND = "bound of the schedule"
CROWDED = 8  # more lines than this in a panel are drawn in a panel for each family


@dataclass(frozen=True)
class Line:
    """One solver's points: y is the mean over repetitions, from low to high goes what the drawing calls `spread`."""

    name: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    owner: str = ""  # name of the line with the same colour, for published numbers and bounds
    what: str = ""  # what such numbers are: `published on MovieLens 1M`, `computed`, `bound`

    @property
    def is_bound(self) -> bool:
        """Whether the points are bounds, which are drawn as bars, and not numbers, which are drawn as diamonds."""
        return self.what == BOUND

    @property
    def below(self) -> list[float]:
        """How far low lies below the mean, point by point."""
        return [max(0.0, y - low) for y, low in zip(self.y, self.low, strict=True)]

    @property
    def above(self) -> list[float]:
        """How far high lies above the mean, point by point."""
        return [max(0.0, high - y) for y, high in zip(self.y, self.high, strict=True)]

    @property
    def spreads(self) -> bool:
        """Whether low and high differ anywhere, so that there is a spread to draw."""
        return any(high > low for low, high in zip(self.low, self.high, strict=True))

    def at(self, x: float, y: float, low: float | None = None, high: float | None = None) -> "Line":
        """The line with one more point; without low and high it has no spread there."""
        ends = (y if low is None else low, y if high is None else high)
        return replace(self, x=(*self.x, x), y=(*self.y, y), low=(*self.low, ends[0]), high=(*self.high, ends[1]))

    def ascending(self) -> "Line":
        """The line with its points in ascending order of x."""
        order = sorted(range(len(self.x)), key=self.x.__getitem__)
        x, y, low, high = (tuple(values[place] for place in order) for values in (self.x, self.y, self.low, self.high))
        return replace(self, x=x, y=y, low=low, high=high)


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: its title and the lines in it."""

    title: str
    lines: tuple[Line, ...]
    beside: tuple[Line, ...] = ()  # published or computed numbers, or bounds: open diamonds in their solver's colour
    curves: tuple[Line, ...] = ()  # reference lines that are not measured
    context: tuple[Line, ...] = ()  # the lines of the panels beside it, in grey and without names
    shares: str = ""  # panels with the same text here have the same range of values
    gap: tuple[float, float] | None = None  # no value lies between these two: the axis is broken here
    best: float | None = None  # the best mean, marked where intervals of differences from it are drawn
    values: str = ""  # the label of its axis of values, if the panels of the figure show different metrics

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """Everything that is drawn in the panel, but for the grey lines."""
        return (*self.lines, *self.beside, *self.curves)


@dataclass(frozen=True)
class Drawing:
    """A figure: its kind, axis labels and panels."""

    kind: str
    x_label: str
    y_label: str
    better: str
    panels: tuple[Panel, ...]
    log_x: bool = False
    log_y: bool = False  # of the axis of values, in whatever direction it is drawn
    spread: str = ""  # what low and high of the lines are; empty if no line has a spread

    def said(self, say: Callable[[str], str]) -> "Drawing":
        """The same drawing with all its texts as `say` says them."""

        def of(lines: tuple[Line, ...]) -> tuple[Line, ...]:
            return tuple(
                replace(line, name=say(line.name), owner=say(line.owner), what=say(line.what)) for line in lines
            )

        def panel_of(panel: Panel) -> Panel:
            own, beside, curves, context = map(of, (panel.lines, panel.beside, panel.curves, panel.context))
            texts = replace(panel, title=say(panel.title), values=say(panel.values))
            return replace(texts, lines=own, beside=beside, curves=curves, context=context)

        panels = tuple(map(panel_of, self.panels))
        return replace(self, x_label=say(self.x_label), y_label=say(self.y_label), panels=panels)

    @property
    def in_families(self) -> bool:
        """Whether the solvers are spread over panels, so that each panel needs a legend of its own."""
        return any(panel.context for panel in self.panels)

    @property
    def looks(self) -> list[Mapping[str, int]]:
        """For each panel the number of each line, which decides colour, marker and dashes."""
        own = [[line.name for line in panel.lines] for panel in self.panels]
        if self.in_families:
            return [{name: number for number, name in enumerate(names)} for names in own]
        every = dict.fromkeys(name for names in own for name in names)
        return [{name: number for number, name in enumerate(every)}] * len(own)
