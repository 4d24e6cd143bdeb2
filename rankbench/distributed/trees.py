"""Sums over parts in a tree of fixed shape, so that no bit depends on which process holds which part."""

from collections.abc import Iterator, Mapping

from rankbench.core.contract import Sums

Place = tuple[int, int]  # of a node: its level, and its number in that level


class PartialSums:
    """Sums over some of the parts, as few as the shape of the tree allows.

    Node (l, n) of the tree is the sum over the parts from n 2^l to (n + 1) 2^l, its two halves added. A half that lies
    wholly behind the last part counts as nothing. Two halves are added as soon as both are there, always the left one
    first, so the order in which they come is of no importance.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.nodes: dict[Place, Sums] = {}

    def add(self, part: int, value: Sums) -> None:
        """Add the value of one part."""
        self._put((0, part), value)

    def join(self, nodes: Mapping[Place, Sums]) -> None:
        """Add sums over other parts."""
        for place, value in nodes.items():
            self._put(place, value)

    @property
    def total(self) -> Sums:
        """The sum over all parts, once all have been added."""
        return self.nodes[(self.parts - 1).bit_length(), 0]

    def _put(self, place: Place, value: Sums) -> None:
        for sibling in _siblings(place, self.parts):
            if sibling is not None:
                if sibling not in self.nodes:
                    break
                other = self.nodes.pop(sibling)
                value = _added(other, value) if sibling < place else _added(value, other)
            place = place[0] + 1, place[1] // 2
        self.nodes[place] = value


def _siblings(place: Place, parts: int) -> Iterator[Place | None]:
    """The siblings of a node and of all above it, up to the root; None for a sibling behind the last part."""
    level, number = place
    while parts > 1 << level:
        yield (level, number ^ 1) if (number ^ 1) << level < parts else None
        level, number = level + 1, number // 2


def _added(left: Sums, right: Sums) -> Sums:
    return tuple(one + other for one, other in zip(left, right, strict=True))
