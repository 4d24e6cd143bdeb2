"""Every model scores by its formula, for one pair or many, and survives a file without pickle."""

import tracemalloc
from dataclasses import dataclass, fields

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from rankbench.arrays.npz import fingerprint, pack
from rankbench.core.errors import UserError
from rankbench.execution.worker import digest_of
from rankbench.kernels.models import scoring
from rankbench.models import (
    MODELS,
    BlendedFactors,
    Factors,
    FeatureFactors,
    HashedScores,
    ItemScores,
    ItemWeights,
    KernelExpansion,
    KernelScores,
    Stumps,
    UserWeights,
    kernel_expansions,
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

BETWEEN = RNG.standard_normal((3, 3)) * (RNG.random((3, 3)) < 0.7)
ROWS = np.array([0, 2, 2, 5]), np.array([1, 2, 0, 1, 2], np.int32), COEFFICIENTS[:5].copy()
WEIGHTED = scipy.sparse.csr_array((ROWS[2], ROWS[1], ROWS[0]), shape=(3, 3)).toarray()
LEVELS = RNG.standard_normal(5)
SHARES, REACHES = RNG.random((3, 2)), RNG.random((5, 2)) + 0.1


def splitmix(number: int) -> int:
    """SplitMix64's finaliser in whole numbers of any size."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number %= 2**64
        number = (number ^ number >> shift) * factor
    return number % 2**64


EXAMPLES = {
    "ItemScores": ItemScores(OFFSETS[[0, 1, 2, 0, 1]]),
    "Factors": Factors(WEIGHTS, FEATURES),
    "Factors of padded rows": Factors(*(np.pad(each, ((0, 0), (0, 2)))[:, :4] for each in (WEIGHTS, FEATURES))),
    "BlendedFactors": BlendedFactors(WEIGHTS, FEATURES, SHARES, REACHES),
    "Factors for further users": Factors(WEIGHTS, FEATURES, np.arange(4.0)),
    "BlendedFactors for further users": BlendedFactors(
        WEIGHTS, FEATURES, SHARES, REACHES, FEATURES[:, :3].copy(), WEIGHTS[:1, :3].copy()
    ),
    "FeatureFactors": FeatureFactors(TASTES, BASIS, FEATURES),
    "FeatureFactors, sparse": FeatureFactors(TASTES, BASIS, scipy.sparse.csr_array(FEATURES)),
    "UserWeights": UserWeights(FEATURES, WEIGHTS, OFFSETS),
    "UserWeights, sparse": UserWeights(scipy.sparse.csr_array(FEATURES), WEIGHTS, OFFSETS),
    "KernelScores": KernelScores(GRAM, np.arange(5, dtype=np.int32), INDPTR, ITEMS, COEFFICIENTS, OFFSETS),
    "KernelScores of items that share rows": KernelScores(
        GRAM[:3, :3].copy(), TWINS, INDPTR, TWINS[ITEMS], COEFFICIENTS, OFFSETS
    ),
    "ItemWeights": ItemWeights(*ROWS, BETWEEN, TWINS, LEVELS),
    "ItemWeights, sparse": ItemWeights(*ROWS, scipy.sparse.csr_array(BETWEEN), TWINS, LEVELS),
    "ItemWeights of users without a rating": ItemWeights(
        np.zeros(4, np.int64), ROWS[1][:0], ROWS[2][:0], BETWEEN, TWINS, LEVELS
    ),
    "HashedScores": HashedScores(2**63 - 1, 3, 5),
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
    "Factors for further users": PRODUCTS,
    "BlendedFactors for further users": PRODUCTS / (SHARES @ REACHES.T),
    "FeatureFactors": TASTES @ (FEATURES @ BASIS).T,
    "FeatureFactors, sparse": TASTES @ (FEATURES @ BASIS).T,
    "UserWeights": PRODUCTS + OFFSETS[:, None],
    "UserWeights, sparse": PRODUCTS + OFFSETS[:, None],
    "KernelScores": EXPANSION @ GRAM + OFFSETS[:, None],
    "KernelScores of items that share rows": EXPANSION @ GRAM[np.ix_(TWINS, TWINS)] + OFFSETS[:, None],
    "ItemWeights": (WEIGHTED @ BETWEEN)[:, TWINS] + LEVELS,
    "ItemWeights, sparse": (WEIGHTED @ BETWEEN)[:, TWINS] + LEVELS,
    "ItemWeights of users without a rating": np.tile(LEVELS, (3, 1)),
    "HashedScores": np.reshape(
        [(splitmix(2**63 - 1 + splitmix(5 * user + item + 1)) >> 11) / 2**53 for user in range(3) for item in range(5)],
        (3, 5),
    ),
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
    monkeypatch.setattr(kernel_expansions, "_ROWS", block)
    assert EXAMPLES[name].score(USERS, OF_ITEMS).tobytes() == expected


@every_model
@pytest.mark.parametrize("threads", [1, 2])
def test_whole_rows_are_the_scores_of_their_pairs(name, threads):
    rows = EXAMPLES[name].score_all(np.array([2, 0, 2]), threads)
    np.testing.assert_allclose(rows, EXPECTED[name][[2, 0, 2]], atol=1e-12)


@pytest.mark.parametrize("rank", [1, 3, 4, 70])
def test_pairs_of_vectors_score_as_in_whole_rows_to_the_last_bit(rank):
    rng = np.random.default_rng(0)
    users, items = rng.standard_normal((30, rank)), rng.standard_normal((90, rank))
    weights = rng.random((30, 2)), rng.random((90, 2))
    some_models = (
        Factors(users, items),
        Factors(np.asfortranarray(users), items[:, ::-1]),
        BlendedFactors(users, items, *weights),
        UserWeights(items, users, rng.standard_normal(30)),
        FeatureFactors(users, rng.standard_normal((6, rank)), rng.standard_normal((90, 6))),
    )
    u, i = rng.integers(30, size=203), rng.integers(90, size=203)  # not a multiple of the pairs scored at a time
    for model in some_models:
        assert model.score(u, i).tobytes() == model.score_all(np.arange(30))[u, i].tobytes()


@pytest.mark.parametrize("cut", [np.s_[:, :10], np.s_[::2, :10], np.s_[::-1, :10]])
def test_a_pair_costs_no_copy_of_a_model_that_shows_a_part_of_wider_rows(cut):
    """Solvers pad rows of vectors for their kernels, and the model has the columns without the padding."""
    rng = np.random.default_rng(0)
    model = Factors(rng.standard_normal((40_000, 12))[cut], rng.standard_normal((500, 12))[:, :10])
    u, i = np.arange(7), np.arange(7)
    tracemalloc.start()
    scores = model.score(u, i)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    np.testing.assert_allclose(scores, (model.users[u] * model.items[i]).sum(axis=1), atol=1e-12)


def test_the_kernel_of_pairs_refuses_rows_that_are_stored_by_columns():
    table, ids = np.ones((3, 2)), np.zeros(4, np.int32)
    for rows, columns in ((np.asfortranarray(table), table), (table, np.asfortranarray(table))):
        with pytest.raises(ValueError, match="next to each other"):
            scoring.pairs(rows=rows, chosen=ids, columns=columns, asked=ids, out=np.empty(4))


@every_model
def test_no_pairs_have_no_scores(name):
    assert EXAMPLES[name].score(USERS[:0], OF_ITEMS[:0]).shape == (0,)


@every_model
@pytest.mark.parametrize(("user", "item"), [(3, 0), (0, 5), (10**6, 0), (0, 10**6), (-1, 0), (0, -1), (2**40, 0)])
def test_whoever_is_not_in_the_model_is_an_error_and_never_a_number_from_elsewhere(name, user, item):
    if name == "ItemScores" and item == 0:
        user, item = 0, 5  # it knows no users
    kind, wrong, last = ("item", item, 4) if item else ("user", user, 2)
    with pytest.raises(UserError, match=rf"^{kind} id {wrong} is out of range: ids run from 0 to {last}$"):
        EXAMPLES[name].score(np.array([0, user]), np.array([0, item]))
    if kind == "user":
        with pytest.raises(UserError, match=rf"^user id {wrong} is out of range: ids run from 0 to 2$"):
            EXAMPLES[name].score_all(np.array([0, user]))


@every_model
def test_a_single_id_is_a_vector_of_one(name):
    assert EXAMPLES[name].score(2, 3).tobytes() == EXAMPLES[name].score(np.array([2]), np.array([3])).tobytes()
    assert EXAMPLES[name].score([], []).shape == (0,)
    if name != "ItemScores":
        with pytest.raises(UserError, match="user id -1 is out of range: ids run from 0 to 2"):
            EXAMPLES[name].score(-1, 0)


@every_model
@pytest.mark.parametrize("ids", [[0.5, 1.0], [np.nan, 0], [True, False], ["0", "1"], [[0, 1], [1, 0]]], ids=str)
def test_ids_are_a_vector_of_integers(name, ids):
    with pytest.raises(UserError, match=r"user ids are .*: they must be a vector of integers"):
        EXAMPLES[name].score(np.array(ids), np.array([0, 1]))
    with pytest.raises(UserError, match=r"item ids are .*: they must be a vector of integers"):
        EXAMPLES[name].score(np.array([0, 1]), np.array(ids))


@every_model
@pytest.mark.parametrize(("users", "items"), [(1, 3), (3, 1), (3, 2), (0, 1)])
def test_pairs_have_as_many_users_as_items(name, users, items):
    with pytest.raises(UserError, match=f"there are {users} users but {items} items; pass one item for each user"):
        EXAMPLES[name].score(np.zeros(users, int), np.zeros(items, int))


@every_model
@pytest.mark.parametrize("threads", [0, -1, 1.5, True, 10**9])
def test_whole_rows_are_made_by_a_number_of_threads(name, threads):
    with pytest.raises(UserError, match=f"^threads={threads} is not valid; give a whole number from 1 to"):
        EXAMPLES[name].score_all(np.array([0]), threads)


def test_a_model_that_knows_nobody_says_so():
    with pytest.raises(UserError, match="user id 0 is out of range: the model has no users"):
        Factors(np.ones((0, 2)), np.ones((3, 2))).score(np.array([0]), np.array([0]))


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
    "a kind that is a number": lambda path: np.savez(path, kind=3, scores=np.ones(3)),
    "a kind of two names": lambda path: np.savez(path, kind=["ItemScores", "Factors"], scores=np.ones(3)),
    "a model's name and no arrays": lambda path: np.savez(path, kind="Factors"),
    "half a model": lambda path: np.savez(path, kind="Factors", users=np.ones((2, 2))),
    "a pickle": lambda path: np.savez(path, kind="ItemScores", scores=np.array([{}])),
}


@pytest.mark.parametrize("write", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_holds_no_model_is_an_error_that_names_it(tmp_path, write):
    write(tmp_path / "model.npz")
    with pytest.raises(UserError, match=r"model\.npz (holds no rankbench model|is damaged or not an npz file)"):
        load(tmp_path / "model.npz")


def _at(place, value):
    """A change of one number of an array."""

    def change(array):
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def _as(dtype):
    return lambda array: array.astype(dtype)


def _put(value):
    return lambda array: np.asarray(value)


CRAFTED = {  # of which model, which array, how changed, and what is said of it
    "scores in a matrix": ("ItemScores", "scores", lambda a: a[None], "scores has the shape 1 x 5"),
    "a number for scores": ("ItemScores", "scores", _put(3.0), "scores is not an array"),
    "scores of text": ("ItemScores", "scores", _as("U"), "scores holds <U32: it must hold real numbers"),
    "complex factors": ("Factors", "users", _as(complex), "users holds complex128: it must hold real numbers"),
    "shorter item vectors": ("Factors", "items", lambda a: a[:, 1:], "items has the shape 5 x 3: it must be any x 4"),
    "a vector of users": ("Factors", "users", lambda a: a[0], "users has the shape 4: it must be any x any"),
    "weights of fewer users": ("BlendedFactors", "user_weights", lambda a: a[1:], "user_weights has the shape 2 x 2"),
    "weights of fewer items": ("BlendedFactors", "item_weights", lambda a: a[1:], "item_weights has the shape 4 x 2"),
    "more weights": ("BlendedFactors", "item_weights", lambda a: np.ones((5, 3)), "item_weights has the shape 5 x 3"),
    "more penalties": ("Factors for further users", "penalties", lambda a: a[:2], "penalties has the shape 2: it must"),
    "shorter anchors": (
        "BlendedFactors for further users",
        "anchors",
        lambda a: a[:, 1:],
        "anchors has the shape 1 x 2",
    ),
    "more anchors": ("BlendedFactors for further users", "anchors", lambda a: a[[0, 0]], "anchors has the shape 2 x 3"),
    "fewer priors": (
        "BlendedFactors for further users", "item_priors", lambda a: a[1:], "item_priors has the shape 4 x 3",
    ),
    "functions of more features": ("FeatureFactors", "basis", lambda a: np.ones((5, 2)), "basis has the shape 5 x 2"),
    "users of more functions": ("FeatureFactors", "users", lambda a: np.ones((3, 3)), "users has the shape 3 x 3"),
    "wide weights": ("UserWeights", "weights", lambda a: np.ones((3, 5)), "weights has the shape 3 x 5"),
    "fewer weights": ("UserWeights", "weights", lambda a: a[:, :3], "weights has the shape 3 x 3: it must be any x 4"),
    "fewer offsets": ("UserWeights", "offsets", lambda a: a[1:], "offsets has the shape 2: it must be 3"),
    "a column beyond": ("UserWeights, sparse", "features.indices", _at(0, 4), "features is not a valid sparse"),
    "a far column": ("UserWeights, sparse", "features.indices", _at(-1, 10**9), "features is not a valid sparse"),
    "a negative column": ("UserWeights, sparse", "features.indices", _at(1, -1), "features is not a valid sparse"),
    "columns that are no integers": (
        "UserWeights, sparse", "features.indices", _as(float), "features.indices holds float64: it must hold integers"
    ),
    "rows that go back": ("UserWeights, sparse", "features.indptr", _at(1, 10**6), "features is not a valid sparse"),
    "negative rows": ("UserWeights, sparse", "features.indptr", _at(1, -3), "features is not a valid sparse"),
    "rows that end too late": ("UserWeights, sparse", "features.indptr", _at(-1, 99), "features is not a valid sparse"),
    "fewer sparse values": ("UserWeights, sparse", "features.data", lambda a: a[1:], "features is not a valid sparse"),
    "sparse values of text": ("UserWeights, sparse", "features.data", _as("U"), "features"),
    "a sparse matrix of more rows": ("UserWeights, sparse", "features.shape", _put([10**9, 4]), "features is not"),
    "of more columns": (
        "UserWeights, sparse", "features.shape", _put([5, 10**12]), "weights has the shape 3 x 4: it must be any x 1000"
    ),
    "of negative columns": ("UserWeights, sparse", "features.shape", _put([5, -4]), "features is not a valid sparse"),
    "a huge shape": ("UserWeights, sparse", "features.shape", _put([2**62, 2**62]), "features is not a valid sparse"),
    "rows of fractions": (
        "UserWeights, sparse", "features.indptr", _as(float), "features.indptr holds float64: it must hold integers"
    ),
    "a shape of three": ("UserWeights, sparse", "features.shape", _put([5, 4, 1]), "features.shape has 3 numbers"),
    "a shape of fractions": ("UserWeights, sparse", "features.shape", _put([5.0, 4.5]), "features.shape holds float64"),
    "a matrix that is not square": ("KernelScores", "gram", lambda a: a[:, :3], "gram has the shape 5 x 3"),
    "a matrix by columns": ("KernelScores", "gram", np.asfortranarray, "gram is stored by columns"),
    "a matrix of floats": ("KernelScores", "gram", _as(np.float32), "gram holds float32: it must hold float64"),
    "an item beyond the matrix": ("KernelScores", "rows", _at(2, 5), "rows holds 5: ids run from 0 to 4"),
    "a negative item": ("KernelScores", "rows", _at(2, -1), "rows holds -1: ids run from 0 to 4"),
    "items of another type": ("KernelScores", "rows", _as(np.int64), "rows holds int64: it must hold int32"),
    "something rated beyond": ("KernelScores", "rated", _at(0, 10**8), "rated holds 100000000: ids run from 0 to 4"),
    "something rated below": ("KernelScores", "rated", _at(0, -(10**8)), "rated holds -100000000: ids run from 0"),
    "more rated": ("KernelScores", "coefficients", lambda a: a[1:], "coefficients has the shape 5: it must be 6"),
    "pointers beyond": ("KernelScores", "indptr", _at(1, 10**9), "indptr holds 1000000000: ids run from 0 to 6"),
    "pointers that fall": ("KernelScores", "indptr", _at(1, 5), "indptr decreases after row 1: it must never"),
    "pointers that start late": ("KernelScores", "indptr", _at(0, 1), "indptr runs from 1 to 6: it must run from 0"),
    "pointers that end early": ("KernelScores", "indptr", _at(-1, 5), "indptr runs from 0 to 5: it must run from 0"),
    "fewer pointers": ("KernelScores", "indptr", lambda a: a[1:], "indptr has the shape 3: it must be 4"),
    "narrow pointers": ("KernelScores", "indptr", _as(np.int32), "indptr holds int32: it must hold int64"),
    "pointers that are no integers": ("KernelScores", "indptr", _as(float), "indptr holds float64: it must hold int"),
    "offsets of more users": ("KernelScores", "offsets", lambda a: np.ones(9), "indptr has the shape 4: it must be 10"),
    "an expansion beyond": ("KernelExpansion", "items", _at(3, 5), "items holds 5: ids run from 0 to 4"),
    "an expansion below": ("KernelExpansion", "items", _at(3, -1), "items holds -1: ids run from 0 to 4"),
    "an expansion's pointers": ("KernelExpansion", "indptr", _at(1, 3), "indptr decreases after row 1"),
    "an unknown kernel": ("KernelExpansion", "kernel", _put("cubic"), "unknown kernel 'cubic'"),
    "no width": ("KernelExpansion", "width", _put(0.0), "width=0.0 is out of range: must be above 0"),
    "a width of words": ("KernelExpansion", "width", _put("wide"), "width=wide is out of range: must be above 0"),
    "NaN for a width": ("KernelExpansion", "width", _put(np.nan), "width=nan is out of range: must be above 0"),
    "no degree": ("KernelExpansion", "degree", _put(0), "degree=0 is out of range: must be at least 1"),
    "half a degree": ("KernelExpansion", "degree", _put(1.5), "degree=1.5 is out of range: must be at least 1"),
    "given and not square": ("KernelExpansion, precomputed", "features", lambda a: a[:, :4], "features are 5 x 4"),
    "a row of thresholds beyond": ("Stumps", "rows", _at(0, 3), "rows holds 3: ids run from 0 to 2"),
    "a negative row of thresholds": ("Stumps", "rows", _at(0, -1), "rows holds -1: ids run from 0 to 2"),
    "a feature beyond": ("Stumps", "features", _at((0, 0), 4), "features holds 4: ids run from 0 to 3"),
    "a negative feature": ("Stumps", "features", _at((0, 0), -1), "features holds -1: ids run from 0 to 3"),
    "a far feature": ("Stumps", "features", _at((0, 0), 2**30), "features holds 1073741824: ids run from 0 to 3"),
    "a sparse feature beyond": ("Stumps, sparse", "features", _at((0, 0), 4), "features holds 4: ids run from 0"),
    "fewer cuts": ("Stumps", "cuts", lambda a: a[:, :1], "cuts has the shape 3 x 1: it must be 3 x 2"),
    "fewer rows of weights": ("Stumps", "weights", lambda a: a[1:], "weights has the shape 2 x 2: it must be 3 x 2"),
    "cuts of integers": ("Stumps", "cuts", _as(int), "cuts holds int64: it must hold float64"),
    "weights that are not square": ("ItemWeights", "weights", lambda a: a[:, :2], "weights has the shape 3 x 2"),
    "weights by columns": ("ItemWeights", "weights", np.asfortranarray, "weights are stored by columns"),
    "weights of floats": ("ItemWeights", "weights", _as(np.float32), "weights holds float32: it must hold float64"),
    "a rated item beyond": ("ItemWeights", "rated", _at(0, 3), "rated holds 3: ids run from 0 to 2"),
    "a weighted item beyond": ("ItemWeights", "columns", _at(0, 3), "columns holds 3: ids run from 0 to 2"),
    "more weighted items": ("ItemWeights", "columns", lambda a: a[1:], "columns has the shape 4: it must be 5"),
    "fewer values of rated items": ("ItemWeights", "values", lambda a: a[1:], "values has the shape 4: it must be 5"),
    "pointers of rated items": ("ItemWeights", "indptr", _at(-1, 4), "indptr runs from 0 to 4: it must run from 0"),
    "no pointers of rated items": ("ItemWeights", "indptr", lambda a: a[:0], "indptr has the shape 0: it must be 1"),
    "weights in disorder": ("ItemWeights, sparse", "weights.indices", lambda a: a[::-1].copy(), "weights"),
    "a seed of a fraction": ("HashedScores", "seed", _put(1.5), "seed=1.5 is out of range: must be a whole number"),
    "a negative number of users": ("HashedScores", "n_users", _put(-1), "n_users=-1 is out of range"),
    "too many items": ("HashedScores", "n_items", _put(2**31), "n_items=2147483648 is out of range"),
    "fewer stump offsets": ("Stumps", "offsets", lambda a: a[:2], "rows holds 2: ids run from 0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "part", "change", "message"), CRAFTED.values(), ids=CRAFTED)
def test_a_file_whose_arrays_do_not_fit_is_refused_before_an_index_is_followed(tmp_path, name, part, change, message):
    arrays = pack(EXAMPLES[name])
    arrays[part] = change(arrays[part])
    np.savez(tmp_path / "model.npz", allow_pickle=False, **arrays)
    with pytest.raises(UserError) as error:
        load(tmp_path / "model.npz")
    said = str(error.value)
    assert "model.npz holds an invalid model: " in said and message in said and said.endswith("; save the model again")
    assert "\n" not in said


@pytest.mark.parametrize("part", ["data", "indices", "indptr", "shape"])
def test_a_file_with_a_part_of_a_sparse_matrix_missing_is_refused(tmp_path, part):
    arrays = pack(EXAMPLES["UserWeights, sparse"])
    del arrays[f"features.{part}"]
    np.savez(tmp_path / "model.npz", allow_pickle=False, **arrays)
    with pytest.raises(UserError, match=r"model\.npz holds (no rankbench|an invalid) model"):
        load(tmp_path / "model.npz")


@every_model
def test_a_file_without_one_of_its_arrays_is_refused(tmp_path, name):
    beside = {each.name for each in fields(EXAMPLES[name]) if not each.metadata.get("scores", True)}
    for part in pack(EXAMPLES[name]).keys() - beside:
        arrays = pack(EXAMPLES[name])
        del arrays[part]
        np.savez(tmp_path / "model.npz", allow_pickle=False, **arrays)
        with pytest.raises(UserError, match=r"model\.npz holds (no rankbench|an invalid) model"):
            load(tmp_path / "model.npz")


@pytest.mark.parametrize("name", ["Factors", "BlendedFactors"])
def test_the_digest_of_a_result_is_of_what_a_model_scores_by(name):
    assert digest_of(EXAMPLES[f"{name} for further users"]) == digest_of(EXAMPLES[name]) == fingerprint(EXAMPLES[name])


@dataclass(init=False)
class Derived:
    """Somebody's own model, whose constructor does not take its fields."""

    scores: np.ndarray

    def __init__(self, doubled):
        self.scores = 2 * doubled


def test_models_of_any_dataclass_have_a_digest():
    assert digest_of(Derived(OFFSETS)) == fingerprint(Derived(OFFSETS)) != digest_of(Derived(WEIGHTS))


def test_models_with_equal_arrays_have_equal_fingerprints_and_others_not():
    model = EXAMPLES["Factors"]
    assert fingerprint(model) == fingerprint(Factors(WEIGHTS.copy(), FEATURES.copy()))
    assert fingerprint(model) != fingerprint(Factors(WEIGHTS, FEATURES + 1e-15))
    assert set(pack(model)) == {"kind", "users", "items"}
