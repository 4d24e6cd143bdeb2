"""The votes of a generated arena, and the scores that a fit tends to as its judges grow in number."""

import numpy as np

from rankbench.core.contract import Floats
from rankbench.data.synthetic.arena import Arena
from rankbench.leaderboards.fits.fitting import fitted
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS, Davidson
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.fits.problems import OfPairs
from rankbench.leaderboards.votes import Groups, Votes

_NODES = 40  # of the quadrature over tastes


def votes_of(arena: Arena, seed: int, draw: int = 0) -> Votes:
    """The arena's comparisons, ties included; another `draw` has other judges and the same items."""
    found = arena.drawn(seed, draw)
    names, codes = np.unique(found.judges, return_inverse=True)
    ones = np.ones(len(found.judges))
    return Votes(
        np.array([f"item {number}" for number in range(arena.items)], object),
        found.left.astype(np.int32),
        found.right.astype(np.int32),
        found.outcome,
        ones,
        ones,
        Groups(np.array([f"judge {name}" for name in names], object), codes.astype(np.int32)),
        covariates=found.lengths[:, None] if arena.length else None,
        covariate_names=("length",) if arena.length else (),
    )


def limit(arena: Arena, seed: int, model: str = "bradley-terry", side: bool = False) -> Floats:
    """The scores that a model's fit tends to, from the chances of the mean judge; lengths must not matter."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    left, right = (places.ravel() for places in np.indices((arena.items, arena.items)))
    apart = left != right
    left, right = left[apart].astype(np.int32), right[apart].astype(np.int32)
    qualities, loadings = arena.qualities(seed), arena.loadings(seed)
    m = qualities[left] - qualities[right] + arena.side
    spread = np.sqrt(np.square(loadings[left] - loadings[right]).sum(axis=1))
    weighed = zip(nodes, weights / weights.sum(), strict=True)
    seen = np.asarray(sum(w * Davidson().chances(m + node * spread, arena.ties) for node, w in weighed))
    none = np.zeros(0)
    pairs = Pairs(arena.items, left, right, seen, seen, np.ones((len(left), int(side))), none.astype(np.int64),
                  none.astype(np.int8), none)  # fmt: skip
    names = ("side",) * side + ("ties",) * LIKELIHOODS[model].has_ties
    return fitted(OfPairs(pairs, LIKELIHOODS[model], names)).scores
