"""Random numbers made from whole numbers, without a state: equal numbers give equal ones."""

import numpy as np
import numpy.typing as npt

Uint64s = npt.NDArray[np.uint64]


def mixed(numbers: Uint64s) -> Uint64s:
    """SplitMix64's finaliser, as in the kernels' random streams: flipping any bit flips about half of the result's."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
