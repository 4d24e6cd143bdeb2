"""Views of the data: checks and errors, what a view keeps, derived comparisons, and read-only arrays."""

import itertools
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench.arrays.npz import fingerprint, pack, read_npz, sealed, write_npz
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, mismatch, offer, view_of

patient = settings(deadline=None)  # a slow machine is no failure

HUGE = 2**40
FEATURES = np.arange(6.0).reshape(3, 2)

BAD_RATINGS = {
    "negative item": (([0, 1], [-1], [5.0], 3), "item id -1 is out of range: ids run from 0 to 2"),
    "item beyond the last": (([0, 2], [0, 3], [5.0, 1.0], 3), "item id 3 is out of range: ids run from 0 to 2"),
    "NaN": (([0, 2], [0, 1], [5.0, np.nan], 3), "rating 1 is nan: ratings must be finite"),
    "infinity": (([0, 1], [0], [-np.inf], 3), "rating 0 is -inf: ratings must be finite"),
    "huge rating": (([0, 2], [0, 1], [5.0, -2e30], 3), "rating 1 is -2e+30: ratings must be within 1e+30: scale them"),
    "text for a rating": (([0, 1], [0], ["good"], 3), "values must be numbers, but they are texts such as 'good'"),
    "duplicate pair": (([0, 1, 3], [1, 1, 1], [1.0, 2.0, 3.0], 3), "user 1 rates item 1 twice: keep one of the two"),
    "unsorted items": (
        ([0, 0, 3], [0, 2, 1], [1.0, 2.0, 3.0], 3),
        "items of user 1 are not in ascending order (row 2)",
    ),
    "no indptr": (([], [], [], 3), "indptr must start at 0 and end at the number of rows, 0"),
    "late start": (([1, 2], [0, 1], [1.0, 2.0], 3), "indptr must start at 0 and end at the number of rows, 2"),
    "early end": (([0, 1], [0, 1], [1.0, 2.0], 3), "indptr must start at 0 and end at the number of rows, 2"),
    "falling indptr": (([0, 2, 1, 2], [0, 1], [1.0, 2.0], 3), "indptr decreases after user 1: it must never decrease"),
    "float ids": (([0, 1], [0.0], [1.0], 3), "items must be integers, not float64"),
    "float indptr": (([0.0, 1.0], [0], [1.0], 3), "indptr must be integers, not float64"),
    "id above int32": (([0, 1], [HUGE], [1.0], 2 * HUGE), f"items holds {HUGE}: ids must be below 2147483647"),
    "id below int32": (([0, 1], [-HUGE], [1.0], 3), f"items holds {-HUGE}: ids must be at least 0"),
    "a matrix of items": (([0, 1], [[0]], [1.0], 3), "items has 2 dimensions: it must be a vector"),
    "length mismatch": (([0, 2], [0, 1], [1.0], 3), "items has 2 rows and values 1: they must have the same length"),
    "features too short": (([0], [], [], 4, FEATURES), "shape (3, 2): expected a row for each of 4 items"),
    "a vector of features": (([0], [], [], 3, np.ones(3)), "shape (3,): expected a row for each of 3 items"),
    "features with NaN": (([0], [], [], 3, FEATURES * np.nan), "NaN or infinite values: fill or drop them first"),
    "huge features": (([0], [], [], 3, FEATURES * 1e200), "item features hold 1e+200: they must be within 1e+30"),
    "features of text": (([0], [], [], 3, [["a"]] * 3), "item_features must be numbers, but they are texts"),
    "sparse features too short": (([0], [], [], 4, scipy.sparse.csr_array(FEATURES)), "each of 4 items"),
    "huge sparse features": (([0], [], [], 3, scipy.sparse.csr_array(-1e200 * FEATURES)), "hold -1e+200: they must be"),
    "sparse features with NaN": (([0], [], [], 3, scipy.sparse.csr_array(FEATURES * np.nan)), "NaN or infinite"),
}
BAD_COMPARISONS = {
    "against itself": (([0, 2], [0, 1], [1, 1], 3), "comparison 1 compares item 1 with itself"),
    "negative item": (([0, 1], [-1], [1], 3), "item id -1 is out of range: ids run from 0 to 2"),
    "worse beyond the last": (([0, 1], [0], [3], 3), "item id 3 is out of range: ids run from 0 to 2"),
    "float ids": (([0, 1], [0], [1.0], 3), "worse must be integers, not float64"),
    "id above int32": (([0, 1], [HUGE], [0], 3), f"better holds {HUGE}: ids must be below 2147483647"),
    "length mismatch": (([0, 1], [0], [1, 2], 3), "better has 1 rows and worse 2: they must have the same length"),
    "early end": (([0, 0], [0], [1], 3), "indptr must start at 0 and end at the number of rows, 1"),
    "falling indptr": (([0, 1, 0, 1], [0], [1], 3), "indptr decreases after user 1"),
    "features too short": (([0, 1], [0], [1], 4, FEATURES), "expected a row for each of 4 items"),
}
BAD_TRIPLES = {
    "no ratings": (Ratings, ([], [], []), "there are no ratings: pass n_users and n_items, or check the data"),
    "no comparisons": (Comparisons, ([], [], []), "there are no comparisons: pass n_users and n_items"),
    "too few users said": (Ratings, ([0, 2], [0, 0], [1.0, 2.0], 2), "user id 2 is out of range: ids run from 0 to 1"),
    "negative user": (Ratings, ([-1], [0], [1.0]), "user id -1 is out of range"),
    "float users": (Ratings, ([0.5], [0], [1.0]), "users must be integers, not float64"),
    "NaN for an item": (Ratings, ([0], [np.nan], [1.0]), "items must be integers, not float64"),
    "user above int32": (Ratings, ([HUGE], [0], [1.0]), f"users holds {HUGE}: ids must be below 2147483647"),
    "float worse": (Comparisons, ([0], [0], [1.0]), "worse must be integers, not float64"),
    "fewer items than users": (
        Ratings,
        ([0, 0], [0], [1.0, 2.0]),
        "users has 2 rows and items 1: they must have the same length",
    ),
    "fewer values than users": (Ratings, ([0, 0], [0, 1], [1.0]), "users has 2 rows and values 1: they must have"),
    "fewer worse than users": (Comparisons, ([0, 0], [0, 1], [1]), "users has 2 rows and worse 1: they must have"),
    "rated twice": (Ratings, ([1, 0, 1], [2, 2, 2], [1.0, 2.0, 3.0]), "user 1 rates item 2 twice"),
    "worse out of range": (Comparisons, ([0], [0], [4], 1, 3), "item id 4 is out of range: ids run from 0 to 2"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_RATINGS.values(), ids=BAD_RATINGS)
def test_bad_ratings_are_refused_in_one_good_sentence(arguments, message):
    with pytest.raises(UserError) as error:
        Ratings(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(("arguments", "message"), BAD_COMPARISONS.values(), ids=BAD_COMPARISONS)
def test_bad_comparisons_are_refused_in_one_good_sentence(arguments, message):
    with pytest.raises(UserError) as error:
        Comparisons(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(("view", "columns", "message"), BAD_TRIPLES.values(), ids=BAD_TRIPLES)
def test_bad_triples_are_refused_in_one_good_sentence(view, columns, message):
    with pytest.raises(UserError) as error:
        view.from_triples(*columns)
    assert message in str(error.value)


@pytest.mark.parametrize("view", [Ratings, Comparisons])
def test_no_rows_are_fine_where_the_sizes_are_said(view):
    empty = view.from_triples([], [], [], n_users=3, n_items=2)
    assert (len(empty), empty.n_users, empty.n_items, len(empty.users)) == (0, 3, 2, 0)


# ---- what a view keeps ----


@st.composite
def triples(draw):
    """(users, items, values), no pair twice, few values so that many are tied."""
    pairs = st.tuples(st.integers(0, 5), st.integers(0, 7))
    chosen = draw(st.lists(pairs, min_size=1, max_size=40, unique=True))
    values = draw(st.lists(st.integers(1, 4), min_size=len(chosen), max_size=len(chosen)))
    return *np.array(chosen).T, np.array(values, float)


def rows_of(view):
    """Every row as a tuple that begins with its user."""
    columns = (view.items, view.values) if isinstance(view, Ratings) else (view.better, view.worse)
    return list(zip(view.users.tolist(), *(column.tolist() for column in columns), strict=True))


@patient
@given(triples(), st.data())
def test_the_order_of_rating_rows_never_matters(columns, data):
    order = data.draw(st.permutations(range(len(columns[0]))))
    view = Ratings.from_triples(*columns)
    assert rows_of(view) == sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert fingerprint(Ratings.from_triples(*(column[order] for column in columns))) == fingerprint(view)


@patient
@given(triples(), st.data())
def test_the_order_of_comparison_rows_never_matters_and_repeats_are_kept(columns, data):
    rows = rows_of(Ratings.from_triples(*columns, 6, 8).comparisons()) * 2
    shuffled = np.array(data.draw(st.permutations(rows)), int).reshape(-1, 3)
    assert rows_of(Comparisons.from_triples(*shuffled.T, 6, 8)) == sorted(rows)


@patient
@given(triples())
def test_sizes_are_found_in_the_ids_or_taken_as_said(columns):
    users, items, _ = columns
    found, said = Ratings.from_triples(*columns), Ratings.from_triples(*columns, n_users=9, n_items=11)
    assert (found.n_users, found.n_items) == (users.max() + 1, items.max() + 1)
    assert (said.n_users, said.n_items) == (9, 11)
    assert rows_of(found) == rows_of(said)


@pytest.mark.parametrize(
    ("view", "name", "dtype"),
    [
        *((Ratings([0, 2], [0, 1], [1, 2], 3, FEATURES), *column) for column in
          (("indptr", "int64"), ("items", "int32"), ("values", "float64"), ("item_features", "float64"))),
        *((Comparisons([0, 2], [0, 1], [1, 2], 3), *column) for column in
          (("indptr", "int64"), ("better", "int32"), ("worse", "int32"))),
    ],
)  # fmt: skip
def test_columns_have_one_type_and_cannot_be_written(view, name, dtype):
    column = getattr(view, name)
    assert column.dtype == dtype and column.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1
    with pytest.raises(FrozenInstanceError):
        setattr(view, name, column)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("form", [scipy.sparse.coo_array, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_features_stay_sparse_and_cannot_be_written(form, part):
    view = Ratings([0], [], [], 3, form(FEATURES))
    assert view.item_features.format == "csr"
    np.testing.assert_array_equal(view.item_features.toarray(), FEATURES)
    with pytest.raises(ValueError, match="read-only"):
        getattr(view.item_features, part)[0] = 1


def test_a_view_does_not_freeze_the_arrays_it_was_given():
    indptr, items, values = np.array([0, 2]), np.array([0, 1], np.int32), np.array([1.0, 2.0])
    dense, sparse = FEATURES.copy(), scipy.sparse.csr_array(FEATURES)
    Ratings(indptr, items, values, 3, dense)
    Comparisons(indptr, items, items[::-1], 3, sparse)
    given_arrays = (indptr, items, values, dense, sparse.data, sparse.indices, sparse.indptr)
    assert all(array.flags.writeable for array in given_arrays)


def _arrays_of(view):
    """Every array that a view holds."""
    parts = [part for part in vars(view).values() if isinstance(part, np.ndarray)]
    features = view.item_features
    return parts + ([features.data, features.indices, features.indptr] if scipy.sparse.issparse(features) else [])


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("locked", ["nothing", "views", "owners"])
def test_what_the_caller_writes_later_never_enters(form, locked):
    indptr, items, values = np.array([0, 2]), np.array([0, 1], np.int32), np.array([1.0, 2.0])
    folds, ids, features = np.array([1, 2], np.int8), np.array([7, 8, 9]), form(FEATURES.copy())
    inner = [features.data, features.indices, features.indptr] if scipy.sparse.issparse(features) else [features]
    own = [indptr, items, values, folds, ids, *inner]
    given = [array.view() for array in own] if locked == "views" else own
    if locked != "nothing":  # the caller can write to the arrays below the views, or unlock the arrays themselves
        for array in given:
            array.flags.writeable = False
        features = type(features)(tuple(given[5:]), shape=(3, 2)) if len(inner) == 3 else given[5]
    ratings = Ratings(*given[:3], 3, features, item_ids=given[4], folds=given[3])
    compared = Comparisons(given[0], given[1], np.array([2, 2], np.int32), 3, features)
    drawn = Ratings.from_triples(np.array([0, 0]), given[1], given[2], 1, 3, features)
    before = fingerprint(ratings, compared, drawn)
    for array in own:
        array.flags.writeable = True
        array[...] = 5
    values[0] = np.nan
    assert fingerprint(ratings, compared, drawn) == before


def test_a_view_of_a_view_copies_nothing():
    view = Ratings([0, 2], np.array([0, 1], np.int32), np.array([1.0, 2.0]), 3, FEATURES.copy())
    sparse = replace(view, item_features=scipy.sparse.csr_array(FEATURES))
    for one in (view, sparse):
        again = replace(one)
        for array, other in zip(_arrays_of(again), _arrays_of(one), strict=True):
            assert np.shares_memory(array, other)
    offered = offer(solver(Ratings, needs_features=True), view)
    assert np.shares_memory(offered.values, view.values)
    assert np.shares_memory(offered.item_features, view.item_features)


def test_columns_that_are_given_away_are_not_copied():
    items, values = sealed(np.array([0, 1], np.int32)), sealed(np.array([1.0, 2.0]))
    for view in (Ratings([0, 2], items, values, 3), Ratings.from_triples(np.zeros(2, int), items, values, 1, 3)):
        assert np.shares_memory(view.items, items) and np.shares_memory(view.values, values)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = np.nan


@pytest.mark.parametrize("features", [FEATURES, scipy.sparse.csr_array(FEATURES)], ids=["dense", "sparse"])
def test_no_array_of_a_view_can_be_unlocked(features):
    columns = sealed(np.array([0, 1], np.int32)), sealed(np.array([1.0, 2.0]))
    view = Ratings([0, 2], *columns, 3, features, item_ids=["a", "b", "c"], folds=np.array([1, 2], np.int8))
    arrays = [*columns, *_arrays_of(view)]
    for array in [*arrays, *(array[:1] for array in arrays), *(array.base for array in arrays)]:
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                array.flags.writeable = True


def test_what_a_file_held_is_not_copied(tmp_path):
    view = Ratings([0, 2], [0, 1], [1.0, 2.0], 3, scipy.sparse.csr_array(FEATURES))
    write_npz(tmp_path / "view.npz", pack(view))
    arrays = read_npz(tmp_path / "view.npz")
    again = view_of(arrays)
    assert fingerprint(again) == fingerprint(view)
    for name in ("indptr", "items", "values"):
        assert np.shares_memory(getattr(again, name), arrays[name])
    assert np.shares_memory(again.item_features.data, arrays["item_features.data"])


def test_making_a_view_of_many_rows_takes_no_more_than_one_copy_of_what_is_not_given_away():
    n = 1_000_000
    users, items, values = np.repeat(np.arange(1000), 1000), np.tile(np.arange(1000), 1000).astype(np.int32), np.ones(n)
    folder = {False: values.nbytes + items.nbytes, True: 0}
    for given_away, copied in folder.items():
        columns = [column.copy() for column in (items, values)]
        if given_away:
            columns = [sealed(column) for column in columns]
        indptr = np.arange(0, n + 1, 1000)
        tracemalloc.start()
        view = Ratings(indptr, *columns, 1000)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(view) == n
        assert copied <= kept < copied + 100_000
    assert len(users) == n


@pytest.mark.parametrize(("part", "value"), [("indices", 2), ("indices", -1), ("indptr", -1), ("indptr", 10**6)])
def test_sparse_features_that_point_beyond_themselves_are_refused(part, value):
    features = scipy.sparse.csr_array(FEATURES)
    getattr(features, part)[1] = value
    with pytest.raises(UserError, match="item features are not a valid sparse matrix: "):
        Ratings([0], [], [], 3, features)


@patient
@given(triples(), st.data())
def test_take_keeps_these_rows_and_all_users_and_items(columns, data):
    ratings = Ratings.from_triples(*columns, 7, 9, np.ones((9, 1)))
    for view in (ratings, ratings.comparisons()):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(view), max_size=len(view))), bool)
        taken = view.take(np.flatnonzero(mask))
        assert rows_of(taken) == [row for row, kept in zip(rows_of(view), mask, strict=True) if kept]
        assert (taken.n_users, taken.n_items) == (7, 9)
        np.testing.assert_array_equal(taken.item_features, view.item_features)


# ---- the comparisons that ratings imply ----


@patient
@given(triples())
def test_comparisons_are_all_strict_pairs(columns):
    view = Ratings.from_triples(*columns)
    pairs = itertools.permutations(rows_of(view), 2)
    expected = [(user, j, k) for (user, j, y), (other, k, z) in pairs if user == other and y > z]
    implied = view.comparisons()
    assert rows_of(implied) == sorted(expected)
    assert (implied.n_users, implied.n_items) == (view.n_users, view.n_items)


@patient
@given(triples(), st.integers(0, 12), st.integers(0, 2**32))
def test_a_limit_takes_so_many_different_strict_pairs_of_each_user(columns, limit, seed):
    view = Ratings.from_triples(*columns)
    everything, drawn = view.comparisons(), view.comparisons(limit, np.random.default_rng(seed))
    assert np.diff(drawn.indptr).tolist() == np.minimum(np.diff(everything.indptr), limit).tolist()
    assert rows_of(drawn) == sorted(set(rows_of(drawn)))
    assert set(rows_of(drawn)) <= set(rows_of(everything))


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_every_subset_of_the_pairs_is_as_likely_as_any_other(limit):
    n_users = 6000
    view = Ratings(np.arange(n_users + 1) * 4, np.tile(np.arange(4), n_users), np.tile([2.0, 1, 3, 2], n_users), 4)
    drawn = view.comparisons(limit, np.random.default_rng(5))
    subsets = list(itertools.combinations(rows_of(view.take(np.arange(4)).comparisons()), limit))
    pairs = (4 * drawn.better + drawn.worse).reshape(n_users, limit)
    counts = [(pairs == [4 * j + k for _, j, k in subset]).all(axis=1).sum() for subset in subsets]
    assert sum(counts) == n_users
    assert scipy.stats.chisquare(counts).pvalue > 0.001


def test_a_sample_depends_on_its_generator_alone():
    view = Ratings.from_triples(np.zeros(30, int), np.arange(30), np.arange(30.0))
    one, again, other = (rows_of(view.comparisons(50, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert one == again != other


def test_drawing_comparisons_needs_a_generator():
    with pytest.raises(UserError, match=r"pass rng=np\.random\.default_rng\(0\)"):
        Ratings([0], [], [], 1).comparisons(limit=3)


def test_comparisons_keep_the_features():
    view = Ratings([0, 2], [0, 1], [1.0, 2.0], 3, FEATURES)
    np.testing.assert_array_equal(view.comparisons().item_features, FEATURES)


# ---- what a solver is offered ----

RATED = Ratings([0, 2], [0, 1], [1.0, 2.0], 3, FEATURES)
COMPARED = Comparisons([0, 1], [1], [0], 3, FEATURES)


def solver(learns_from, needs_features=False):
    """The declarations that `offer` reads."""
    return SimpleNamespace(learns_from=learns_from, needs_features=needs_features)


@pytest.mark.parametrize("needs_features", [False, True])
@pytest.mark.parametrize(
    ("learns_from", "view", "expected"),
    [
        (Ratings, RATED, Ratings),
        (Comparisons, RATED, Comparisons),
        (Comparisons, COMPARED, Comparisons),
        ((Ratings, Comparisons), RATED, Ratings),
        ((Comparisons, Ratings), RATED, Ratings),
        ((Ratings, Comparisons), COMPARED, Comparisons),
    ],
)
def test_a_solver_is_offered_what_it_declared_and_nothing_more(learns_from, view, expected, needs_features):
    declared = solver(learns_from, needs_features)
    offered = offer(declared, view)
    assert mismatch(declared, view) is None
    assert type(offered) is expected
    assert rows_of(offered) == rows_of(view if isinstance(view, expected) else view.comparisons())
    assert (offered.item_features is not None) == needs_features


@pytest.mark.parametrize("view", [RATED, COMPARED], ids=["ratings", "comparisons"])
def test_no_solver_is_offered_ids_names_or_folds(view):
    told = replace(view, feature_names=["a", "b"], user_ids=[7], item_ids=["x", "y", "z"])
    if isinstance(told, Ratings):
        told = replace(told, folds=np.array([1, 2], np.int8))
    offered = offer(solver((Ratings, Comparisons), needs_features=True), told)
    assert (offered.feature_names, offered.user_ids, offered.item_ids) == (None, None, None)
    assert getattr(offered, "folds", None) is None


@pytest.mark.parametrize(
    ("declared", "view", "reason"),
    [
        (solver(Ratings, True), replace(RATED, item_features=None), "needs item features, the data has none"),
        (solver(Comparisons, True), replace(COMPARED, item_features=None), "needs item features, the data has none"),
        (solver(Ratings), COMPARED, "learns from ratings, the data holds comparisons"),
    ],
)
def test_a_mismatch_says_why(declared, view, reason):
    assert mismatch(declared, view) == reason
    with pytest.raises(UserError, match=f"SimpleNamespace {reason}"):
        offer(declared, view)


def test_rows_by_item_are_those_of_the_transpose():
    rng = np.random.default_rng(0)
    cells = np.sort(rng.choice(7 * 9, 30, replace=False))
    ratings = Ratings.from_triples(cells // 9, cells % 9, rng.standard_normal(30), n_users=7, n_items=11)
    index = ratings.by_item()
    expected = scipy.sparse.csr_array((ratings.values, ratings.items, ratings.indptr), (7, 11)).tocsc()
    np.testing.assert_array_equal(index.indptr, expected.indptr)
    np.testing.assert_array_equal(index.users, expected.indices)
    np.testing.assert_array_equal(ratings.values[index.rows], expected.data)
    np.testing.assert_array_equal(index.counts, np.bincount(ratings.items, minlength=11))
    assert len(index) == 30 and index.indptr.dtype == np.int64 and index.users.dtype == np.int32


# ---- what a view refuses ----


@pytest.mark.parametrize("ids", [[0.5, 1.5, 2.5], ["a", "b"], [[1, 2, 3]]], ids=str)
def test_ids_that_are_no_vector_of_integers_or_texts_for_every_item_are_refused(ids):
    with pytest.raises(UserError, match="item_ids must be a vector of 3 integers or texts, not "):
        Ratings([0], [], [], 3, item_ids=ids)


def test_features_without_a_column_and_a_limit_below_zero_are_refused():
    with pytest.raises(UserError, match="item features have no column: leave them out, or give at least one"):
        Ratings([0], [], [], 3, np.zeros((3, 0)))
    with pytest.raises(UserError, match="limit=-1 is out of range: must be at least 0"):
        Ratings([0, 2], [0, 1], [1.0, 2.0], 3).comparisons(-1, np.random.default_rng(0))


def test_comparisons_are_drawn_by_a_number_or_a_generator():
    view = Ratings([0, 4], [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0], 4)
    by_number, by_generator = (view.comparisons(2, rng) for rng in (3, np.random.default_rng(3)))
    assert by_number.better.tolist() == by_generator.better.tolist()
    assert by_number.worse.tolist() == by_generator.worse.tolist()
