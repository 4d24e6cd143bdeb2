"""Random generators seeded by names, not by counters, so that the order of a run cannot change its numbers."""

import hashlib
from collections.abc import Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np

from rankbench.core.errors import UserError

# What Scientific Python's SPEC 7 lets an argument `rng` be.
RNG: TypeAlias = (
    int | np.integer | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None
)


def stream(seed: int, *names: object) -> np.random.Generator:
    """The random generator for this seed and these names; it is the same on every machine."""
    text = "\x1f".join([str(seed), *map(str, names)])
    entropy = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def checked_seed(seed: int, name: str = "seed") -> int:
    """The seed, or an error if it is below 0, which an experiment's seed cannot be either."""
    if seed < 0:
        raise UserError(f"{name}={seed} is out of range: must be at least 0")
    return seed


def seed_of(seed: int, rng: RNG = None) -> int:
    """The seed that a call with these arguments means: `rng` if it is given, else `seed`.

    A whole number is a seed by either name. From a generator a number is drawn, so that each call has another seed.
    """
    if rng is not None and seed != 0:
        raise UserError("seed and rng say the same thing", remedy="give only one of them")
    given: Any = seed if rng is None else rng
    name = "seed" if rng is None else "rng"
    if not isinstance(given, bool):
        try:
            return checked_seed(index(given), name)
        except TypeError:
            pass
        if rng is not None:
            try:
                return int(np.random.default_rng(rng).integers(2**62))
            except (TypeError, ValueError):
                pass
    kinds = "a whole number" if rng is None else "a whole number or a numpy.random.Generator"
    raise UserError(f"{name}={given!r:.60} is not valid", remedy=f"give {kinds}")
