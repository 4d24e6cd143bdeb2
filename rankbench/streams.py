"""Random streams derived from names, never from counters: the order of a run cannot change a number."""

import hashlib

import numpy as np


def stream(seed: int, *names: object) -> np.random.Generator:
    """The generator that belongs to these names under this seed, the same on every machine."""
    text = "\x1f".join([str(seed), *map(str, names)])
    entropy = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
