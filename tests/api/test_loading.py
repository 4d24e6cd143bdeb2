"""Loading from Python: names, paths, DataFrames, sparse matrices and saved models."""

import warnings

import numpy as np
import pandas
import pytest
import scipy.sparse

import rankbench
from rankbench.arrays.npz import as_kernels_take
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import trained
from rankbench.experiments import Budget
from rankbench.solvers import SOLVERS

TABLE = pandas.DataFrame(
    {"rating": [5.0, 3.0, 1.0], "userId": ["bob", "alice", "bob"], "movieId": [20, 10, 10], "extra": [0, 0, 0]}
)
FEATURES = pandas.DataFrame({"year": [1999, 1950, 2001], "long": [1, 0, 1]}, index=[30, 20, 10])
PAIRS = pandas.DataFrame({"user": [1, 1, 2], "better": ["x", "y", "x"], "worse": ["y", "z", "z"]})


def test_a_table_of_ratings_is_what_the_same_file_is(tmp_path):
    view = rankbench.load(TABLE)
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    for text in (f"csv:{tmp_path / 'table.csv'}", f"{tmp_path / 'table.csv'}", tmp_path / "table.csv"):
        again = rankbench.load(text)
        for name in ("indptr", "items", "values", "user_ids", "item_ids"):
            assert list(map(str, getattr(view, name))) == list(map(str, getattr(again, name)))
    assert (view.user_ids.tolist(), view.item_ids.tolist()) == (["alice", "bob"], [10, 20])
    assert (view.users.tolist(), view.items.tolist(), view.values.tolist()) == ([0, 1, 1], [0, 0, 1], [3.0, 1.0, 5.0])


@pytest.mark.parametrize("kind", ["category", "string", object])
def test_ids_may_have_any_type_of_texts(kind):
    assert rankbench.load(TABLE.astype({"userId": kind})).user_ids.tolist() == ["alice", "bob"]


def test_columns_of_other_names_are_named():
    view = rankbench.load(TABLE.rename(columns={"userId": "who", "movieId": "what"}), user="who", item="what")
    assert view.user_ids.tolist() == ["alice", "bob"]
    pairs = PAIRS.rename(columns={"better": "left", "worse": "right"})
    view = rankbench.load(pairs, better="left", worse="right")
    assert type(view).__name__ == "Comparisons" and len(view) == 3


def test_a_table_of_comparisons_is_known_by_its_columns():
    view = rankbench.load(PAIRS)
    assert view.item_ids.tolist() == ["x", "y", "z"] and view.user_ids.tolist() == [1, 2]
    assert (view.better.tolist(), view.worse.tolist()) == ([0, 1, 0], [1, 2, 2])


def test_a_file_of_comparisons_is_known_by_its_columns(tmp_path):
    PAIRS.to_csv(tmp_path / "pairs.csv", index=False)
    view, same = rankbench.load(tmp_path / "pairs.csv"), rankbench.load(PAIRS)
    assert view.item_ids.tolist() == ["x", "y", "z"]
    assert (view.better.tolist(), view.worse.tolist()) == (same.better.tolist(), same.worse.tolist())


def test_the_last_of_repeated_rows_is_kept_if_asked():
    twice = pandas.concat([TABLE, TABLE.iloc[[1]].assign(rating=4)], ignore_index=True)
    assert rankbench.load(twice, repeats="last").values.tolist() == [4.0, 1.0, 5.0]


def test_numbers_of_python_in_a_column_of_objects_are_numbers():
    view = rankbench.load(TABLE.astype({"userId": object, "movieId": object, "rating": object}))
    same = rankbench.load(TABLE)
    assert (
        (view.user_ids == same.user_ids).all()
        and view.item_ids.dtype == np.int64
        and (view.values == same.values).all()
    )
    for wrong in ([1, "a", 2], [2**64, 1, 2], [True, False, 1]):
        with pytest.raises(UserError, match="ids are whole numbers or texts"):
            rankbench.load(TABLE.assign(userId=pandas.Series(wrong, dtype=object)))


def test_a_sparse_matrix_has_users_as_rows():
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 2, 2], [1, 0, 3])), shape=(3, 5))
    view = rankbench.load(matrix)
    assert (view.n_users, view.n_items, view.values.tolist()) == (3, 5, [1.0, 2.0, 3.0])
    assert (view.users.tolist(), view.items.tolist()) == ([0, 2, 2], [1, 0, 3])


def test_a_sparse_matrix_stays_as_it_is_and_may_be_read_only():
    matrix = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 2, 3])), shape=(2, 2))
    for column in (matrix.data, matrix.indices, matrix.indptr):
        column.flags.writeable = False
    view = rankbench.load(matrix)
    assert view.items.tolist() == [0, 1, 0] and view.values.tolist() == [2.0, 1.0, 3.0]
    assert matrix.indices.tolist() == [1, 0, 0] and matrix.data.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rankbench.load(TABLE.drop(columns="rating")),
         "the columns 'userId', 'movieId', 'extra' do not say which is which of user, item, rating; for items without "
         "ratings pass table.assign(rating=1)"),
        (lambda: rankbench.load(TABLE.rename(columns={"userId": "who"})),
         "the columns 'rating', 'who', 'movieId', 'extra' do not say which is which of user, item, rating; name them: "
         "load(table, user=..., item=..., rating=...)"),
        (lambda: rankbench.load(TABLE, usr="userId"), "unknown role of a column 'usr'; did you mean 'user'?"),
        (lambda: rankbench.load(TABLE, user="who"), "user=who: no column of 'rating', 'userId', 'movieId', 'extra'"),
        (lambda: rankbench.load(TABLE.iloc[:0]), "the table has no rows; check how it was made"),
        (lambda: rankbench.load(pandas.concat([TABLE, TABLE.iloc[[1]]])),
         "row 3: user 'alice', item 10 is in an earlier row too; pass repeats=\"last\" to keep the last one"),
        (lambda: rankbench.load(TABLE.assign(rating="good")),
         "the rating is of type "),
        (lambda: rankbench.load(TABLE.assign(rating=[1, None, 2])),
         "row 1: the rating is missing; drop such rows: table.dropna(subset=['rating'])"),
        (lambda: rankbench.load(TABLE.assign(userId=["a", None, "b"])), "row 1: the user is missing; drop such rows"),
        (lambda: rankbench.load(TABLE.assign(movieId=[1.0, 2.0, 3.0])),
         "the item is of type float64; make it whole numbers: table['movieId'].astype(int)"),
        (lambda: rankbench.load(TABLE.assign(userId=["a", 5, "b"])),
         "the user holds a int, such as 5; ids are whole numbers or texts: table['userId'].astype(str)"),
        (lambda: rankbench.load(TABLE.assign(movieId=np.array([1, 2**63, 3], np.uint64))),
         "row 1: the item 9223372036854775808 does not fit into 64 bits; make it a text: table['movieId'].astype(str)"),
        (lambda: rankbench.load(TABLE.assign(userId=["a", "", "b"])), "row 1: the user '' is empty; drop the row, or"),
        (lambda: rankbench.load(PAIRS.assign(worse=[1, 2, 3])), "better and worse hold texts and numbers; give both"),
        (lambda: rankbench.load(TABLE.assign(rating=[1.0, float("inf"), 2.0])), "rating 0 is inf"),
        (lambda: rankbench.load([1, 2]), "a list cannot be loaded; pass a name, a path, a DataFrame (of pandas"),
        (lambda: rankbench.load("gone.csv"), "there is no file 'gone.csv'; check the path"),
        (lambda: rankbench.load("gone.npz"), "cannot read the model gone.npz: No such file or directory"),
        (lambda: rankbench.load("ml-100k", user="who"),
         'user= belongs to a DataFrame; for a file write it into the name: load("csv:PATH[user='),
        (lambda: rankbench.load(TABLE, features=[1, 2]), "the features are a list; pass a pandas DataFrame"),
        (lambda: rankbench.load(TABLE, features=FEATURES.loc[[10]]), "the features have no row for item 20; add it"),
        (lambda: rankbench.load(TABLE, features=FEATURES.loc[[10, 20, 10]]), "item 10 has two rows of features; keep"),
        (lambda: rankbench.load(TABLE, features=FEATURES.assign(kind="war")), "the feature 'kind' is of type "),
        (lambda: rankbench.load("low-rank", features=FEATURES), "features= belongs to a DataFrame; for a file"),
        (lambda: rankbench.load(scipy.sparse.eye_array(3), features=FEATURES), "features= belongs to a DataFrame; "),
        (lambda: rankbench.load(scipy.sparse.coo_array(np.ones(3))),
         "the matrix is of shape (3,); give it a row for each user and a column for each item"),
        (lambda: rankbench.load(scipy.sparse.eye_array(3), user="who"), "user= belongs to a DataFrame; the rows of"),
        (lambda: rankbench.load("low-rnk"), "unknown data set 'low-rnk'; did you mean 'low-rank'?"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_answered_in_one_line(call, message):
    with pytest.raises(UserError) as error:
        call()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_a_model_learned_from_a_table_recommends_by_its_ids():
    rng = np.random.default_rng(0)
    users, items = np.divmod(rng.choice(20 * 30, 200, replace=False), 30)
    table = pandas.DataFrame({"user": [f"u{user}" for user in users], "item": items, "rating": rng.integers(1, 6, 200)})
    model = rankbench.fit("sgd[rank=2]", rankbench.load(table), steps=2)
    found = model.recommend("u3", k=5)
    assert len(found) == 5 and not set(found["item"]) & set(table["item"][table["user"] == "u3"])


@pytest.mark.parametrize(
    ("column", "times"),
    [
        ([30, 10, 20], [10, 20, 30]),
        (pandas.to_datetime(["1970-01-03", "1970-01-01", "1970-01-02"]), [0, 86_400_000_000, 172_800_000_000]),
        (["1970-01-03T00:00", "1970-01-01", "1970-01-02"], [0, 86_400_000_000, 172_800_000_000]),
        (["soon", "late", "never"], None),
        ([1, None, 3], None),
    ],
)
def test_times_are_kept_where_they_can_be_read(column, times):
    view = rankbench.load(TABLE.assign(Timestamp=column))  # rows are in the order of users and items
    assert (None if view.times is None else view.times.tolist()) == times


def test_whole_numbers_that_pandas_made_floats_are_times():
    assert rankbench.load(TABLE.assign(time=[30.0, 10.0, 20.0])).times.tolist() == [10, 20, 30]


@pytest.mark.parametrize("column", [np.array([2**63 + 5, 1, 2], np.uint64), [1.5, 2.5, 3.5], [True, False, True]])
def test_numbers_that_are_no_times_are_left_out_without_a_warning(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rankbench.load(TABLE.assign(time=column)).times is None


def test_a_column_of_times_can_be_named_and_must_then_be_right():
    table = TABLE.assign(when=[30, 10, 20])
    assert rankbench.load(table).times is None
    assert rankbench.load(table, timestamp="when").times.tolist() == [10, 20, 30]
    with pytest.raises(UserError, match=r"timestamp=then: no column of .* has this name"):
        rankbench.load(table, timestamp="then")
    with pytest.raises(UserError, match=r"row 0: the time 'soon' is neither .*; convert it: pandas"):
        rankbench.load(table.assign(when="soon"), timestamp="when")


def test_a_wrong_name_of_the_times_is_an_error_where_another_column_has_a_usual_name():
    with pytest.raises(UserError, match="timestamp=whn: no column of"):
        rankbench.load(TABLE.assign(when=[30, 10, 20], time=[1, 2, 3]), timestamp="whn")


def test_columns_that_are_called_by_numbers_are_those_of_these_names():
    table = TABLE[["extra", "userId", "movieId", "rating"]].set_axis(range(4), axis=1).assign(more=[30, 10, 20])
    view = rankbench.load(table, user=1, item=2, rating=3, timestamp="more")
    assert (view.user_ids.tolist(), view.item_ids.tolist()) == (["alice", "bob"], [10, 20])
    assert view.values.tolist() == [3.0, 1.0, 5.0] and view.times.tolist() == [10, 20, 30]
    assert rankbench.load(table, user=1, item=2, rating=3, timestamp=0).times.tolist() == [0, 0, 0]


def test_the_folder_of_an_exported_split_is_a_split(tmp_path):
    from rankbench.data.export import export

    parts = rankbench.split(rankbench.load(TABLE), "per-user", test=0.5)
    export(parts, tmp_path / "fold", data="table", split="per-user", seed=0, repetition=0)
    assert rankbench.load(tmp_path / "fold").hash == parts.hash


def test_item_features_come_from_a_table_with_the_items_as_its_index():
    view = rankbench.load(TABLE, features=FEATURES)
    assert view.item_features.tolist() == [[2001.0, 1.0], [1950.0, 0.0]]
    assert view.feature_names.tolist() == ["year", "long"]
    model = rankbench.fit("ranksvm-separate", rankbench.load(TABLE, features=FEATURES / 1000), steps=2)
    more = model.with_items(FEATURES.loc[[30]] / 1000, [30])
    assert more.recommend("alice", k=5)["item"].tolist() in ([20, 30], [30, 20])


REAL = {"user": [0, 0, 1], "item": [0, 1, 0], "rating": [1.0, 2.0, 3.0]}
COMPLEX = {
    "a column": (
        lambda: rankbench.load(pandas.DataFrame(REAL | {"rating": [1j, 2, 3]})),
        "the rating is of type complex",
    ),
    "a matrix": (lambda: rankbench.load(scipy.sparse.csr_array([[1j, 2.0], [0.0, 3.0]])), "the ratings in the matrix"),
    "a feature": (
        lambda: rankbench.load(pandas.DataFrame(REAL), features=pandas.DataFrame({"year": [1j, 2.0]}, index=[0, 1])),
        "the feature 'year' is of type complex",
    ),
    "a sparse feature": (
        lambda: Ratings.from_triples([0], [0], [1.0], item_features=scipy.sparse.csr_array([[1j]])),
        "item_features must be numbers, but they are of type complex",
    ),
    "a score": (lambda: as_kernels_take(np.array([1j]), np.float64), "the values are of type complex"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "problem"), COMPLEX.values(), ids=COMPLEX)
def test_complex_numbers_are_refused_and_not_cut(make, problem):
    with pytest.raises(UserError, match=problem):
        make()


@pytest.mark.filterwarnings("error")
def test_complex_features_of_new_items_are_refused():
    frame = pandas.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "rating": [1.0, 2.0, 2.0, 1.0]})
    data = rankbench.load(frame, features=pandas.DataFrame({"year": [1.0, 2.0]}, index=[0, 1]))
    model = rankbench.fit("ranksvm-separate", data, steps=1)
    with pytest.raises(UserError, match="the features are no numbers"):
        model.with_items(np.array([[1j]]), [2])


def test_a_text_that_no_file_can_hold_is_no_id():
    users = pandas.Series(["a", "\ud800b", "a"], dtype=object)
    with pytest.raises(UserError, match=r"row 1: the user '.ud800b' has a lone surrogate, which no file can hold"):
        rankbench.load(pandas.DataFrame(REAL).assign(user=users))
    for name in ("user_ids", "item_ids"):
        with pytest.raises(UserError, match=f"{name} holds 'b.udcff', with a lone surrogate"):
            Ratings.from_triples([0, 1], [0, 1], [1.0, 2.0], **{name: np.array(["a", "b\udcff"])})
    ids = np.array(["😀", "größe"])
    assert Ratings.from_triples([0, 1], [0, 1], [1.0, 2.0], user_ids=ids).user_ids.tolist() == ids.tolist()


def test_seeds_below_zero_are_one_error_wherever_they_are_given():
    view = rankbench.load("low-rank[users=20,items=10,per_user=8]")
    for call in (
        lambda: rankbench.load("low-rank", seed=-1),
        lambda: rankbench.split(view, "entries", seed=-1),
        lambda: rankbench.fit("global", view, seed=-1),
        lambda: rankbench.audit("low-rank", seed=-1),
        lambda: rankbench.run("park2015-table1", seed=-1),
        lambda: rankbench.on(view, seed=-1),
        lambda: trained(SOLVERS.make("global"), view, Budget(steps=1), seed=-1),
    ):
        with pytest.raises(UserError, match=r"^seed=-1 is out of range: must be at least 0$"):
            call()


def test_names_of_files_longer_than_a_system_allows_are_one_line():
    for call in (rankbench.load, rankbench.on):
        with pytest.raises(UserError, match="no file 'xxx"):
            call(300 * "x" + ".csv")
