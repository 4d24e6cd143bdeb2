"""No integer ends the process or keeps a kernel from ending: what is out of range raises, and names the argument."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from kernel_fuzzing import entries as all_entries
from kernel_scalars import WORK, kind_of, parameters
from kernels.test_fuzzed_kernels import python

from rankbench.kernels.data.splits import against_unrated
from rankbench.kernels.methods import all_pairs, als, entries, fold_in, margins, ranksvm, rotation
from rankbench.kernels.methods import negatives as negative_items
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.metrics import catalogue, evaluation, lists
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, Pattern, SparseRows
from rankbench.kernels.solvers import altsvm, cofirank, frsvm, global_ranking, rankboost, sgd, svrank

LIMIT = 2**31 - 1
INDPTR, IDS = np.array([0, 2, 3]), np.array([0, 4, 2], np.int32)
PATTERN = Pattern(indptr=INDPTR, columns=IDS)
SPARSE = SparseRows(indptr=INDPTR, columns=IDS, values=np.ones(3))
COMPARISONS = ComparisonRows(indptr=INDPTR, better=IDS, worse=np.array([1, 0, 3], np.int32))
USERS, GROUPS, ONE_PAIR = np.arange(2, dtype=np.int32), np.zeros(5, np.int32), np.zeros((1, 1), np.int32)
OUT = np.zeros(2)


def problem(loss=cofirank.Loss.REGRESSION):
    """CofiRank's problem for two users."""
    ones = np.ones(3)
    return cofirank.Problem(loss=loss, rows=SPARSE, anchors=ones, scales=ones[:2], weights=ones, discounts=ones)


def planes(most):
    factors = np.zeros((5, 4))
    return cofirank.users_half(
        problem=problem(), users=np.zeros((2, 4)), factors=factors, lam=1.0, tolerance=0.1, most_planes=most, threads=1
    )


def boosted(n_features):
    ratings = SparseRows(indptr=np.array([0, 2]), columns=np.array([0, 1], np.int32), values=np.array([1.0, 2.0]))
    return rankboost.RunList(ratings=ratings, pairs=np.ones(1), features=SPARSE, n_features=n_features, threads=1)


def bucketed(groups, user_group=USERS):
    return rotation.bucket(
        comparisons=COMPARISONS, user_group=user_group, item_group=GROUPS, pair_of=ONE_PAIR, groups=groups
    )


def recorded(n_tasks):
    return altsvm.records_of(
        comparisons=COMPARISONS, user_order=USERS, item_group=GROUPS, pair_of=ONE_PAIR, n_tasks=n_tasks
    )


def visited(passes):
    vectors = altsvm.Vectors(users=np.zeros((2, 4)), items=np.zeros((5, 4)))
    box, duals = altsvm.Box(ridge=1.0, upper=1.0), np.zeros(3, np.float32)
    altsvm.users_pass(box=box, comparisons=COMPARISONS, duals=duals, vectors=vectors, passes=passes, seed=0, threads=1)


def improved(iterations):
    out = np.zeros((2, 4))
    als.improve_ridge(
        rows=SPARSE,
        vectors=np.zeros((5, 4)),
        penalties=als.Ridge(each=np.ones(4)),
        iterations=iterations,
        out=out,
        threads=1,
    )


def swept(block):
    als.sweep_ridge(
        rows=SPARSE,
        vectors=np.zeros((5, 4)),
        penalties=als.Ridge(each=np.ones(4)),
        block=block,
        out=np.zeros((2, 4)),
        threads=1,
    )


def unrated(n_items, counts=(0, 1, 2)):
    rng = np.random.default_rng(0)
    return against_unrated(rated=PATTERN, n_items=n_items, out_indptr=np.array(counts, np.int64), rng=rng)


def negatives(n_items):
    negative_items.draw_negatives(positives=PATTERN, n_items=n_items, seed=0, out=np.zeros(3, np.int32), threads=1)


def listed(k):
    candidates = lists.Candidates(seen=PATTERN, held_out=PATTERN)
    return lists.ends(scores=np.zeros((2, 5)), users=USERS, candidates=candidates, k=k, threads=1)


BOUNDS = {  # a call, its argument's name and limits
    "tournament": (
        lambda n: global_ranking.Tournament(better=IDS, worse=IDS[::-1].copy(), n_items=n),
        "n_items",
        5,
        LIMIT,
    ),
    "item blocks": (lambda n: frsvm.ItemBlocks(rows=PATTERN, n_items=n, width=2), "n_items", 5, LIMIT),
    "width": (lambda n: frsvm.ItemBlocks(rows=PATTERN, n_items=5, width=n), "width", 1, LIMIT),
    "tile": (lambda n: frsvm.ItemBlocks(rows=PATTERN, n_items=5, width=2, tile=n), "tile", 0, LIMIT),
    "newton steps": (lambda n: frsvm.TruncatedNewton(C=1.0, steps=n, cg=1, forcing=0.1), "steps", 0, LIMIT),
    "conjugate gradients": (lambda n: frsvm.TruncatedNewton(C=1.0, steps=1, cg=n, forcing=0.1), "cg", 0, LIMIT),
    "features": (boosted, "n_features", 5, LIMIT),
    "sparse features": (lambda n: ranksvm.ItemFeatures(d=n, sparse=SPARSE), "d", 5, LIMIT),
    "groups": (bucketed, "groups", 2, LIMIT),
    "tasks": (recorded, "n_tasks", 1, LIMIT),
    "entries": (lambda n: entries.gather(comparisons=COMPARISONS, n_items=n), "n_items", 5, LIMIT),
    "places": (lambda n: all_pairs.place_pairs(comparisons=COMPARISONS, n_items=n), "n_items", 5, LIMIT),
    "planes": (planes, "most_planes", 1, LIMIT),
    "passes": (visited, "passes", 0, LIMIT),
    "iterations": (improved, "iterations", 0, LIMIT),
    "block": (swept, "block", 1, LIMIT),
    "rounds": (lambda n: svrank.PairProblem(C=1.0, eps=0.1, tolerance=0.1, rounds=n), "rounds", 1, LIMIT),
    "unrated items": (unrated, "n_items", 5, LIMIT),
    "negatives": (negatives, "n_items", 5, LIMIT),
    "lists": (listed, "k", 1, 2**63 - 1),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_out_of_range_is_refused_by_name_and_what_is_in_range_is_taken(name):
    call, argument, low, high = BOUNDS[name]
    call(low)
    limits = f"{argument}=({low - 1}|-1) is out of range: must be at least {low} and at most {high}"
    for number in {low - 1, -1}:
        with pytest.raises(ValueError, match=f"^{limits}$"):
            call(number)
    with pytest.raises((ValueError, OverflowError), match=f"{argument}=|too large|too big"):
        call(2**63 - 1 if high < 2**63 - 1 else 2**63)


def test_the_tasks_of_all_groups_are_counted_in_32_bits():
    pair_of, one_user = np.full((1, 1), 999, np.int32), np.zeros(2, np.int32)
    with pytest.raises(
        ValueError, match=re.escape("groups=2147484 is out of range: must be at least 1 and at most 214")
    ):
        rotation.bucket(
            comparisons=COMPARISONS, user_group=one_user, item_group=GROUPS, pair_of=pair_of, groups=2_147_484
        )


def test_a_user_with_none_or_all_of_the_items_has_no_comparison():
    rows = Pattern(indptr=np.array([0, 0, 5]), columns=np.arange(5, dtype=np.int32))
    for counts in ([0, 1, 1], [0, 0, 1]):
        with pytest.raises(ValueError, match="a user with none or all of n_items=5 items can have no comparison"):
            against_unrated(rated=rows, n_items=5, out_indptr=np.array(counts), rng=np.random.default_rng(0))


def test_a_round_has_only_tasks_that_there_are():
    records, starts = recorded(3)
    vectors = altsvm.Vectors(users=np.zeros((2, 4)), items=np.zeros((5, 4)))
    tasks = altsvm.TaskRecords(records=records, starts=starts)
    altsvm.items_from_duals(tasks=tasks, rounds=np.array([[0, 3]]), vectors=vectors, threads=1)
    for rounds, words in (([[0, 4]], "end of a round=4"), ([[-1, 2]], "first task of a round=-1")):
        with pytest.raises(ValueError, match=f"^{words} is out of range"):
            altsvm.items_from_duals(tasks=tasks, rounds=np.array(rounds), vectors=vectors, threads=1)


@pytest.mark.parametrize("rank", [0, 3])
def test_vectors_are_padded_to_whole_lanes(rank):
    with pytest.raises(ValueError, match=f"rows of {rank} numbers are not padded to whole lanes"):
        altsvm.Vectors(users=np.zeros((2, rank)), items=np.zeros((5, rank)))


def test_memory_that_no_machine_has_is_refused_and_not_counted_modulo_2_64():
    with pytest.raises(MemoryError):
        planes(LIMIT)


# ---- codes ----


def asked(*codes, cut=0, discounts=9, threshold=1.0):
    """These metrics, with one discount for each of so many places."""
    n = len(codes)
    return Requests(
        codes=np.array(codes, np.int32),
        cuts=np.full(n, cut, np.int32),
        thresholds=np.full(n, threshold),
        discounts=np.ones(discounts),
    )


def rated():
    """Three ratings of one user with their scores."""
    numbers = np.array([1.0, 2.0, 3.0])
    return evaluation.RatedScores(indptr=np.array([0, 3]), truth=numbers, scores=numbers[::-1].copy())


def on_catalogue(requests):
    """The metrics of two users with all five items as candidates."""
    out = np.full((1, 2), np.nan)
    catalogue.per_user(
        scores=np.arange(10.0).reshape(2, 5),
        users=USERS,
        held_out=SPARSE,
        seen=PATTERN,
        requests=requests,
        out=out,
        threads=1,
    )
    return out


KNOWN = [code for code in Code if code != Code.KNOWN]
OF_PLACES = {
    Code.NDCG, Code.NDCG_LINEAR, Code.PRECISION, Code.RECALL, Code.RECIPROCAL_RANK, Code.AVERAGE_PRECISION, Code.AUC,
}  # fmt: skip


@pytest.mark.parametrize("code", KNOWN, ids=lambda code: code.name)
def test_every_metric_has_a_value(code):
    found = evaluation.per_user(test=rated(), requests=asked(code, threshold=2.0), threads=1, train=rated())
    assert np.isfinite(found).all()


@pytest.mark.parametrize("code", KNOWN, ids=lambda code: code.name)
def test_the_catalogue_takes_metrics_of_places_and_refuses_all_others(code):
    if code in OF_PLACES:
        assert np.isfinite(on_catalogue(asked(code))).all()
    else:
        with pytest.raises(ValueError, match=f"the metric with the code {int(code)} does not depend on places alone"):
            on_catalogue(asked(code))


@pytest.mark.parametrize("code", sorted(OF_PLACES), ids=lambda code: code.name)
def test_a_truth_that_is_not_a_number_is_the_lowest_of_all(code):
    """No view holds one. A sort would leave places empty, and what stood there before led beyond the discounts."""
    rng = np.random.default_rng(0)
    n, found = 40, []
    scores, truth = rng.integers(0, 3, (1, n)).astype(float), rng.integers(0, 9, n).astype(float)
    missing, items = rng.permutation(n) < 20, np.arange(n, dtype=np.int32)
    for lowest in (np.nan, -np.inf):
        out = np.full((1, 1), np.nan)
        catalogue.per_user(
            scores=scores,
            users=np.zeros(1, np.int32),
            held_out=SparseRows(indptr=np.array([0, n]), columns=items, values=np.where(missing, lowest, truth)),
            seen=Pattern(indptr=np.array([0, 0]), columns=np.zeros(0, np.int32)),
            requests=asked(code, discounts=n, threshold=2.0),
            out=out,
            threads=1,
        )
        found.append(out[0, 0])
    np.testing.assert_equal(*found)


@pytest.mark.parametrize("code", [-1, 24, 25, 99])
def test_an_unknown_metric_is_refused(code):
    with pytest.raises(ValueError, match=f"no metric has the code {code}"):
        asked(code)


def test_a_negative_cut_is_refused():
    with pytest.raises(ValueError, match="cut=-1 is out of range"):
        asked(Code.PRECISION, cut=-1)


def test_ndcg_needs_a_discount_for_each_place():
    for call, needed in ((lambda r: evaluation.per_user(test=rated(), requests=r, threads=1), 3), (on_catalogue, 5)):
        call(asked(Code.NDCG, discounts=needed))
        call(asked(Code.NDCG, cut=2, discounts=2))
        with pytest.raises(ValueError, match=f"places of NDCG={needed} is out of range: .* at most {needed - 1}"):
            call(asked(Code.NDCG, discounts=needed - 1))


def summed(loss):
    margins.losses(loss=loss, comparisons=COMPARISONS, users=np.ones((2, 4)), items=np.ones((5, 4)), out=OUT, threads=1)


def sloped(loss):
    entries.slopes(
        loss=loss,
        entries=PATTERN,
        comparisons=ComparisonRows(indptr=INDPTR, better=GROUPS[:3], worse=GROUPS[:3]),
        scores=np.zeros(3),
        loss_out=OUT,
        slope_out=np.zeros(3),
        threads=1,
    )


def differentiated(loss):
    entries.gradients(
        loss=loss,
        entries=PATTERN,
        comparisons=ComparisonRows(indptr=INDPTR, better=GROUPS[:3], worse=GROUPS[:3]),
        users=np.ones((2, 4)),
        items=np.ones((5, 4)),
        out=entries.Derivatives(losses=np.zeros(2), users=np.zeros((2, 4)), items=np.zeros((5, 4)), slopes=np.zeros(0)),
        threads=1,
    )


def swept(loss):
    tournament = global_ranking.Tournament(better=IDS[:2], worse=IDS[1::-1].copy(), n_items=5)
    pairs = len(tournament.arrays()[1])
    global_ranking.sweep(
        loss=loss,
        tournament=tournament,
        scores=np.zeros(5),
        totals=np.zeros((3, 5)),
        curvature=np.zeros(pairs),
        threads=1,
    )


def descended(loss):
    factors = DescentFactors(
        users=np.zeros((2, 4)), items=np.zeros((5, 4)), user_shrink=OUT, item_shrink=np.zeros(5), step=1.0, decay=0.0
    )
    sgd.Descent(factors=factors, loss=loss)


def listed(loss):
    rows = Pattern(indptr=np.array([0, 2]), columns=np.array([0, 1], np.int32))
    pairs = ComparisonRows(indptr=np.array([0, 1]), better=np.zeros(1, np.int32), worse=np.ones(1, np.int32))
    all_pairs.TaskPairs(rows=rows, listed=pairs, loss=loss)


def rivalled(loss):
    fold_in.rivals(
        positives=PATTERN,
        items=np.ones((5, 4)),
        offsets=np.zeros(5),
        loss=loss,
        lam=1.0,
        users=np.zeros((len(INDPTR) - 1, 4)),
        threads=1,
    )


TAKE_A_LOSS = {"losses": summed, "slopes": sloped, "sweep": swept, "Descent": descended, "Problem": problem,
               "TaskPairs": listed, "rivals": rivalled, "gradients": differentiated}  # fmt: skip


@pytest.mark.parametrize("name", TAKE_A_LOSS)
def test_every_loss_is_taken_and_no_other_code(name):
    kind = cofirank.Loss if name == "Problem" else Loss
    for loss in kind:
        TAKE_A_LOSS[name](loss)
    for code in (len(kind), 99, LIMIT):
        with pytest.raises(ValueError, match=f"^loss={code} is the code of no loss$"):
            TAKE_A_LOSS[name](code)
    with pytest.raises((ValueError, OverflowError)):
        TAKE_A_LOSS[name](-1)


def test_these_are_all_kernels_that_take_a_loss():
    assert {owner.rpartition(".")[2] for (owner, _), kind in parameters().items() if kind is not int} == set(
        TAKE_A_LOSS
    )


# ---- all integers of all kernels ----


def tried(rounds: int, same: int, log: Path, seconds: int) -> subprocess.CompletedProcess[str]:
    """Every integer of every kernel, in a process for each kernel."""
    return python("kernel_scalars.py", str(rounds), str(same), str(log), seconds=seconds)


@pytest.mark.trust
def test_other_integers_raise_or_return(tmp_path):
    done = tried(3, 1, tmp_path / "log", seconds=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    assert re.fullmatch(r"\d{3,} calls of \d\d kernels\n", done.stdout)


@pytest.mark.trust
def test_other_integers_of_many_calls_raise_or_return(tmp_path):
    done = tried(40, 40, tmp_path / "log", seconds=3600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"


def test_the_stubs_tell_which_arguments_are_integers():
    names = {name for _, name in parameters()}
    assert WORK <= names
    assert {"threads", "seed", "n_items", "width", "most_planes", "k", "d", "n", "loss"} <= names
    (gather,) = (entry for entry in all_entries() if entry.name == "gather")
    assert kind_of(gather, "n_items") is int
    assert kind_of(gather, "comparisons") is None
