"""Features of 32 bits stay so, and give what the same numbers in double precision give."""

from dataclasses import replace

import numpy as np
import pytest

import rankbench
from rankbench.core.blas import one_blas_thread
from rankbench.data.views import Ratings, offer
from rankbench.features.matrix import DenseFeatures, features_of
from rankbench.features.single import SingleFeatures
from rankbench.solvers.frsvm import FRSVM
from rankbench.solvers.ranksvm_joint import RankSVMJoint
from rankbench.solvers.ranksvm_separate import RankSVMSeparate


def view(items=300, features=1_000, kind=np.float32):
    """Comparisons of items with features of this type, the same numbers for both types."""
    made = rankbench.load(f"arena[items={items},judges=30,comparisons=3000,features=8,taste=1]")
    rng = np.random.default_rng(0)
    wide = (made.item_features @ rng.standard_normal((8, features))).astype(np.float32)
    return replace(made, item_features=wide.astype(kind))


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (1_000, 400), (1, 1)])
def test_products_are_those_of_doubles(shape, square):
    rng = np.random.default_rng(1)
    given = rng.standard_normal(shape).astype(np.float32)
    single, double = SingleFeatures(given, square), DenseFeatures(given.astype(float))
    double = double.squared() if square else double
    assert single.shape == double.shape
    assert single.square_sum == pytest.approx(double.square_sum, rel=1e-12)
    for tail in ((), (4,)):
        right, left = rng.standard_normal((shape[1], *tail)), rng.standard_normal((shape[0], *tail))
        np.testing.assert_allclose(single.times(right), double.times(right), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(single.transposed_times(left), double.transposed_times(left), rtol=1e-10, atol=1e-9)


def test_products_have_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(1)
    single = SingleFeatures(rng.standard_normal((3_000, 200)).astype(np.float32))
    right, left = rng.standard_normal((200, 3)), rng.standard_normal((3_000, 3))
    with one_blas_thread():
        found = [(single.times(right, n).tobytes(), single.transposed_times(left, n).tobytes()) for n in (1, 2, 5)]
    assert len(set(found)) == 1


def test_a_view_keeps_them_and_gives_doubles_to_solvers_that_need_those():
    data = view()
    assert data.item_features.dtype == np.float32
    assert rankbench.split(data, "per-user").train.item_features.dtype == np.float32
    assert offer(FRSVM(), data).item_features.dtype == np.float32
    assert offer(RankSVMSeparate(), data).item_features.dtype == np.float64
    assert features_of(data.item_features).stored.dtype == np.float64
    whole = Ratings([0, 1], [0], [1.0], 1, np.ones((1, 2), np.int8))
    assert whole.item_features.dtype == np.float64


@pytest.mark.parametrize(
    "solver",
    [FRSVM(rank=2, loss="logistic"), FRSVM(rank=2, partitions=2), RankSVMJoint(C=0.01), RankSVMSeparate(C=0.01)],
    ids=str,
)
def test_solvers_learn_from_them_what_they_learn_from_doubles(solver):
    one, other = (rankbench.fit(solver, view(kind=kind), steps=4) for kind in (np.float32, np.float64))
    found, expected = (model.score_all(np.arange(30, dtype=np.int32)) for model in (one, other))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_training_has_the_same_bits_on_any_number_of_threads():
    data = view()
    bits = {
        rankbench.fit("frsvm[rank=2,loss=logistic]", data, steps=3, threads=threads).model.basis.tobytes()
        for threads in (1, 2, 4)
    }
    assert len(bits) == 1


def test_a_model_of_them_is_stored_extended_and_folded_into(tmp_path):
    data = view()
    model = rankbench.fit("frsvm[rank=2,loss=logistic]", data, steps=3)
    assert model.model.features.dtype == np.float32
    rankbench.save(model, tmp_path / "m.npz")
    again = rankbench.load(str(tmp_path / "m.npz"))
    assert again.model.features.dtype == np.float32
    everyone = np.arange(30, dtype=np.int32)
    np.testing.assert_array_equal(again.score_all(everyone), model.score_all(everyone))
    more = model.with_items(np.ones((2, 1_000)))
    assert more.model.features.dtype == np.float32
    np.testing.assert_array_equal(more.score_all(everyone)[:, :300], model.score_all(everyone))
    few = data.take(np.arange(data.indptr[1]))
    later = model.fold_in(few)
    assert np.corrcoef(later.score_all(np.zeros(1, np.int32))[0], model.score_all(np.zeros(1, np.int32))[0])[0, 1] > 0.5


@pytest.mark.parametrize(("stored", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8")])
def test_files_of_arrays_keep_the_precision(tmp_path, stored, kept):
    (tmp_path / "pairs.csv").write_text("user,better,worse\n1,0,1\n1,1,2\n")
    np.save(tmp_path / "f.npy", np.arange(6).reshape(3, 2).astype(stored))
    name = f"pairs:{tmp_path}/pairs.csv[features={tmp_path}/f.npy]"
    for _ in range(2):  # parsed, and out of the cache
        assert rankbench.load(name).item_features.dtype == kept
