"""Twins in Python of what the kernels draw at random, and of the order in which a pass of SGD visits comparisons."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

Word = Callable[[], int]  # the next 32 random bits

SEATS = 4  # users who take turns


def below(word: Word, n: int) -> int:
    """An even draw from 0 .. n-1 (Lemire 2019)."""
    product = word() * n
    while product % 2**32 < 2**32 % n:
        product = word() * n
    return product // 2**32


def shuffled(word: Word, n: int) -> list[int]:
    """0 .. n-1 in random order (Fisher and Yates)."""
    order = list(range(n))
    for index in range(n):
        drawn = index + below(word, n - index)
        order[index], order[drawn] = order[drawn], order[index]
    return order


def shuffled_inside_out(word: Word, n: int) -> list[int]:
    """0 .. n-1 in random order, whose part of any length depends on the first draws alone."""
    order = list(range(n))
    for index in range(n):
        drawn = below(word, index + 1)
        order[index], order[drawn] = order[drawn], index
    return order


def mixed(x: int) -> int:
    """SplitMix64's finaliser."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def stream(seed: int, number: int) -> Word:
    """The stream of the task with this number."""
    state = mixed((seed + mixed(number + 1)) % 2**64)

    def word() -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        return mixed(state) >> 32

    return word


def in_turns(users: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """What users do, one thing of each of four in turns; who has nothing left makes room for the next."""
    seats: list[deque[Any]] = [deque() for _ in range(SEATS)]
    seat = 0
    for own in users:
        while seats[seat]:
            seat += 1
            if seat == SEATS:
                for _ in range(min(map(len, seats))):
                    yield from [each.popleft() for each in seats]
                seat = 0
        seats[seat] = deque(own)
    yield from chain(*seats)


def visits(word: Word, counts: Any) -> Iterator[tuple[int, int]]:
    """A serial pass over the comparisons of users who have so many: of each the user, and its place among theirs."""
    seed = word() + 2**32 * word()
    order = shuffled(word, len(counts))
    return in_turns(
        [(user, row) for row in shuffled_inside_out(stream(seed, user), int(counts[user]))] for user in order
    )
