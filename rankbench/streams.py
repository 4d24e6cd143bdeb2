"""Random generators seeded by names, not by counters, so that the order of a run cannot change its numbers."""

import hashlib

import numpy as np


def stream(seed: int, *names: object) -> np.random.Generator:
    """The random generator for this seed and these names; it is the same on every machine."""
    text = "\x1f".join([str(seed), *map(str, names)])
    entropy = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
