"""Every model scores by its formula, one pair at a time or many, and survives a file without pickle."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from rankbench import models
from rankbench.arrays import fingerprint, pack
from rankbench.errors import UserError
from rankbench.models import (
    MODELS,
    BlendedFactors,
    Factors,
    FeatureFactors,
    ItemScores,
    KernelExpansion,
    KernelScores,
    Stumps,
    UserWeights,
    load,
    save,
)

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((5, 4)) * (RNG.random((5, 4)) < 0.6)
TASTES, BASIS = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2))
WEIGHTS, OFFSETS = RNG.standard_normal((3, 4)), RNG.standard_normal(3)
GRAM = FEATURES @ FEATURES.T
COEFFICIENTS = RNG.standard_normal(6)
INDPTR, ITEMS = np.array([0, 2, 2, 6]), np.array([1, 3, 0, 1, 2, 4], np.int32)
TWINS = np.array([0, 1, 2, 1, 0], np.int32)
EXPANSION = scipy.sparse.csr_array((COEFFICIENTS, ITEMS, INDPTR), shape=(3, 5)).toarray()
STUMPS = np.array([[0, 1], [1, 1], [0, 0]], np.int32), RNG.standard_normal((3, 2)), RNG.standard_normal((3, 2))
EVERYBODY = np.arange(3, dtype=np.int32)
ABOVE = FEATURES[:, STUMPS[0]].transpose(1, 2, 0) > STUMPS[1][:, :, None]  # users x thresholds x items
BOOSTED = np.einsum("ut,uti->ui", STUMPS[2], ABOVE) + OFFSETS[:, None]

SHARES, REACHES = RNG.random((3, 2)), RNG.random((5, 2)) + 0.1

EXAMPLES = {
    "ItemScores": ItemScores(OFFSETS[[0, 1, 2, 0, 1]]),
    "Factors": Factors(WEIGHTS, FEATURES),
    "Factors of padded rows": Factors(*(np.pad(each, ((0, 0), (0, 2)))[:, :4] for each in (WEIGHTS, FEATURES))),
    "BlendedFactors": BlendedFactors(WEIGHTS, FEATURES, SHARES, REACHES),
    "FeatureFactors": FeatureFactors(TASTES, BASIS, FEATURES),
    "FeatureFactors, sparse": FeatureFactors(TASTES, BASIS, scipy.sparse.csr_array(FEATURES)),
    "UserWeights": UserWeights(FEATURES, WEIGHTS, OFFSETS),
    "UserWeights, sparse": UserWeights(scipy.sparse.csr_array(FEATURES), WEIGHTS, OFFSETS),
    "KernelScores": KernelScores(GRAM, np.arange(5, dtype=np.int32), INDPTR, ITEMS, COEFFICIENTS, OFFSETS),
    "KernelScores of items that share rows": KernelScores(
        GRAM[:3, :3].copy(), TWINS, INDPTR, TWINS[ITEMS], COEFFICIENTS, OFFSETS
    ),
    "Stumps": Stumps(FEATURES, EVERYBODY, *STUMPS, OFFSETS),
    "Stumps, sparse": Stumps(scipy.sparse.csr_array(FEATURES), EVERYBODY, *STUMPS, OFFSETS),
    "Stumps without a threshold": Stumps(FEATURES, EVERYBODY, *(part[:, :0] for part in STUMPS), OFFSETS),
    "KernelExpansion": KernelExpansion(FEATURES, "gaussian", 1.5, 2, INDPTR, ITEMS, COEFFICIENTS, OFFSETS),
    "KernelExpansion, sparse": KernelExpansion(
        scipy.sparse.csr_array(FEATURES), "gaussian", 1.5, 2, INDPTR, ITEMS, COEFFICIENTS, OFFSETS
    ),
    "KernelExpansion, polynomial": KernelExpansion(
        FEATURES, "polynomial", 1.5, 3, INDPTR, ITEMS, COEFFICIENTS, OFFSETS
    ),
    "KernelExpansion, precomputed": KernelExpansion(GRAM, "precomputed", 1.0, 2, INDPTR, ITEMS, COEFFICIENTS, OFFSETS),
}
GAUSSIAN = EXPANSION @ rbf_kernel(FEATURES, gamma=1 / (2 * 1.5**2)) + OFFSETS[:, None]
POLYNOMIAL = EXPANSION @ polynomial_kernel(FEATURES, gamma=1 / 1.5**2, degree=3) + OFFSETS[:, None]
PRODUCTS = WEIGHTS @ FEATURES.T
EXPECTED = {
    "ItemScores": np.tile(OFFSETS[[0, 1, 2, 0, 1]], (3, 1)),
    "Factors": PRODUCTS,
    "Factors of padded rows": PRODUCTS,
    "BlendedFactors": PRODUCTS / (SHARES @ REACHES.T),
    "FeatureFactors": TASTES @ (FEATURES @ BASIS).T,
    "FeatureFactors, sparse": TASTES @ (FEATURES @ BASIS).T,
    "UserWeights": PRODUCTS + OFFSETS[:, None],
    "UserWeights, sparse": PRODUCTS + OFFSETS[:, None],
    "KernelScores": EXPANSION @ GRAM + OFFSETS[:, None],
    "KernelScores of items that share rows": EXPANSION @ GRAM[np.ix_(TWINS, TWINS)] + OFFSETS[:, None],
    "Stumps": BOOSTED,
    "Stumps, sparse": BOOSTED,
    "Stumps without a threshold": np.tile(OFFSETS[:, None], 5),
    "KernelExpansion": GAUSSIAN,
    "KernelExpansion, sparse": GAUSSIAN,
    "KernelExpansion, polynomial": POLYNOMIAL,
    "KernelExpansion, precomputed": EXPANSION @ GRAM + OFFSETS[:, None],
}
USERS, OF_ITEMS = (grid.ravel() for grid in np.indices((3, 5)))
every_model = pytest.mark.parametrize("name", EXAMPLES)


@every_model
def test_a_model_scores_by_its_formula(name):
    scores = EXAMPLES[name].score(USERS, OF_ITEMS)
    assert scores.dtype == np.float64 and scores.shape == (15,)
    np.testing.assert_allclose(scores.reshape(3, 5), EXPECTED[name], atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_items_of_the_same_features_tie_exactly(kind):
    features = np.random.default_rng(2).standard_normal((300, 7))
    features[[17, 130, 299]] = features[0]
    model = FeatureFactors(TASTES, np.random.default_rng(3).standard_normal((7, 2)), kind(features))
    same = np.array([0, 17, 130, 299])
    for user in range(3):
        assert len(set(model.score(np.full(4, user), same))) == 1
        assert len(set(model.score_all(np.array([user]))[0, same])) == 1


@every_model
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
def test_pairs_may_come_in_any_order_and_integer_type(name, dtype):
    order = np.random.default_rng(1).permutation(15).repeat(2)
    users, items = USERS[order].astype(dtype), OF_ITEMS[order].astype(dtype)
    expected = EXAMPLES[name].score(USERS, OF_ITEMS)[order]
    assert EXAMPLES[name].score(users, items).tobytes() == expected.tobytes()


@every_model
@pytest.mark.parametrize("block", [1, 4, 15])
def test_scores_do_not_depend_on_the_size_of_a_block(monkeypatch, name, block):
    expected = EXAMPLES[name].score(USERS, OF_ITEMS).tobytes()
    monkeypatch.setattr(models, "_BLOCK", block)
    monkeypatch.setattr(models, "_ROWS", block)
    assert EXAMPLES[name].score(USERS, OF_ITEMS).tobytes() == expected


@every_model
@pytest.mark.parametrize("threads", [1, 2])
def test_whole_rows_are_the_scores_of_their_pairs(name, threads):
    rows = EXAMPLES[name].score_all(np.array([2, 0, 2]), threads)
    np.testing.assert_allclose(rows, EXPECTED[name][[2, 0, 2]], atol=1e-12)


@every_model
def test_no_pairs_have_no_scores(name):
    assert EXAMPLES[name].score(USERS[:0], OF_ITEMS[:0]).shape == (0,)


@every_model
@pytest.mark.parametrize(("user", "item"), [(3, 0), (0, 5), (10**6, 0), (0, 10**6)])
def test_whoever_is_not_in_the_model_is_an_error_and_never_a_number_from_elsewhere(name, user, item):
    if name == "ItemScores" and item == 0:
        user, item = 0, 5  # it knows no users
    with pytest.raises(IndexError):
        EXAMPLES[name].score(np.array([0, user]), np.array([0, item]))


@pytest.mark.parametrize(
    ("model", "unknown"),
    [
        (ItemScores(np.array([1.0, np.nan, 2.0])), [False, True, False] * 2),
        (Factors(np.array([[1.0], [np.nan]]), np.array([[1.0], [2.0], [np.nan]])), [False, False, True] + [True] * 3),
        (
            BlendedFactors(*(np.array([[1.0], [np.nan]]), np.array([[1.0], [2.0], [np.nan]])) * 2),
            [False, False, True] + [True] * 3,
        ),
        (
            UserWeights(np.eye(3), np.array([[1.0] * 3, [np.nan] * 3]), np.array([0.0, np.nan])),
            [False] * 3 + [True] * 3,
        ),
        (
            UserWeights(
                scipy.sparse.eye_array(3).tocsr(), np.array([[1.0] * 3, [np.nan] * 3]), np.array([0.0, np.nan])
            ),
            [False] * 3 + [True] * 3,
        ),
        (
            KernelScores(
                np.eye(3),
                np.arange(3, dtype=np.int32),
                np.array([0, 1, 1]),
                np.array([2], np.int32),
                np.ones(1),
                np.array([0.0, np.nan]),
            ),
            [False] * 3 + [True] * 3,
        ),
    ],
)
def test_whoever_the_model_cannot_score_gets_nan(model, unknown):
    users, items = (grid.ravel() for grid in np.indices((2, 3)))
    assert np.isnan(model.score(users, items)).tolist() == unknown


# ---- files ----


def test_there_is_an_example_of_every_model():
    assert {type(model).__name__ for model in EXAMPLES.values()} == set(MODELS)


@every_model
@pytest.mark.parametrize("as_text", [False, True])
def test_a_saved_model_gives_the_same_bits_when_it_is_loaded(tmp_path, name, as_text):
    path = tmp_path / "model.npz"
    save(EXAMPLES[name], str(path) if as_text else path)
    again = load(str(path) if as_text else path)
    assert type(again) is type(EXAMPLES[name])
    assert fingerprint(again) == fingerprint(EXAMPLES[name])
    assert again.score(USERS, OF_ITEMS).tobytes() == EXAMPLES[name].score(USERS, OF_ITEMS).tobytes()


@every_model
def test_a_saved_model_holds_no_pickle(tmp_path, name):
    save(EXAMPLES[name], tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert {part: file[part].dtype.kind for part in file.files if file[part].dtype.kind not in "iufU"} == {}
        assert str(file["kind"]) == type(EXAMPLES[name]).__name__


BAD_FILES = {
    "text": lambda path: path.write_text("users: 3"),
    "nothing": lambda path: path.write_bytes(b""),
    "other arrays": lambda path: np.savez(path, scores=np.ones(3)),
    "another kind": lambda path: np.savez(path, kind="Ratings", scores=np.ones(3)),
    "a model's name and no arrays": lambda path: np.savez(path, kind="Factors"),
    "half a model": lambda path: np.savez(path, kind="Factors", users=np.ones((2, 2))),
    "a pickle": lambda path: np.savez(path, kind="ItemScores", scores=np.array([{}])),
}


@pytest.mark.parametrize("write", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_holds_no_model_is_an_error_that_names_it(tmp_path, write):
    write(tmp_path / "model.npz")
    with pytest.raises(UserError, match=r"model\.npz (holds no model of rankbench|is damaged or no npz file)"):
        load(tmp_path / "model.npz")


def test_models_with_equal_arrays_have_equal_fingerprints_and_others_not():
    model = EXAMPLES["Factors"]
    assert fingerprint(model) == fingerprint(Factors(WEIGHTS.copy(), FEATURES.copy()))
    assert fingerprint(model) != fingerprint(Factors(WEIGHTS, FEATURES + 1e-15))
    assert set(pack(model)) == {"kind", "users", "items"}
