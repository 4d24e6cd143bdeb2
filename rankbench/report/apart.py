"""The pieces of a report made on all cores, each in a process of its own; what these do not keep is made as always."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rankbench.core.system import usable_cores

_SEVERAL = 4  # pieces; fewer are not worth the processes
_MOST = 8  # processes

Make = Callable[[Path, Path, list[str], bool], None]  # of results, into a folder, these pieces, with or without a page


def make_apart(make: Make, out: Path, to: Path, costs: dict[str, int], page: bool) -> None:
    """Have the pieces of these names made and kept, if there are several of them and several cores.

    `costs` says about how much work each is. A process that fails leaves its pieces to the caller.
    """
    count = min(usable_cores(), _MOST)
    if len(costs) < _SEVERAL or count < 2:
        return
    from rankbench.execution.isolation import forked, server  # noqa: PLC0415  starts processes

    context = server()
    running = [forked(context, make, (out, to, names, page)) for names in shares(costs, count)]
    try:
        for process in running:
            process.join()
    finally:
        for process in running:
            process.kill()


def shares(costs: dict[str, int], count: int) -> Sequence[list[str]]:
    """The names dealt into so many parts of about the same work, the largest first."""
    parts: list[list[str]] = [[] for _ in range(count)]
    loads = [0] * count
    for name in sorted(costs, key=lambda name: -costs[name]):
        least = loads.index(min(loads))
        parts[least].append(name)
        loads[least] += costs[name] + 1
    return [part for part in parts if part]
