"""Dealing rows into parts: the requested numbers, uniformly at random."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from data.splits.small import SEEDS, patient
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from rankbench.data.splits.dealing import at_most, choose, deal

GROUPS = st.lists(st.tuples(*[st.integers(0, 6)] * 3), max_size=20)  # two quotas and what is left over


@patient
@given(GROUPS, SEEDS)
def test_every_group_gets_its_quotas_and_the_rest_the_next_label(groups, seed):
    counts = np.array(groups, int).reshape(-1, 3)
    indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    quotas = counts[:, :2].copy()
    labels = deal(indptr, np.random.default_rng(seed), *quotas.T)
    found = [np.bincount(labels[a:b], minlength=3).tolist() for a, b in pairwise(indptr)]
    assert found == counts.tolist()
    assert (quotas == counts[:, :2]).all()  # the caller's are not used up


def test_every_way_to_deal_is_as_likely_as_any_other():
    users = 30_000
    indptr = np.arange(users + 1) * 5
    labels = deal(indptr, np.random.default_rng(0), np.full(users, 2), np.full(users, 1)).reshape(users, 5)
    ways, times = np.unique(labels, axis=0, return_counts=True)
    assert sorted(map(tuple, ways.tolist())) == sorted(set(permutations([0, 0, 1, 2, 2])))
    assert chisquare(times).pvalue > 0.001


@pytest.mark.parametrize("k", [0, 1, 4, 5])
def test_a_choice_has_its_size_and_candidates_ascend(k):
    rng = np.random.default_rng(0)
    assert choose(5, k, rng).sum() == k
    candidates = np.array([3, 5, 8, 9, 20])
    drawn = at_most(k, candidates, rng)
    assert len(drawn) == k and (np.diff(drawn) > 0).all() and set(drawn) <= set(candidates)
    assert at_most(9, candidates, rng).tolist() == candidates.tolist()
