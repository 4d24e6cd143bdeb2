"""Runs and truths in every form that tools write, and files that are wrong."""

import gzip
import json
import sys

import numpy as np
import pandas
import pytest
import scipy.sparse

from rankbench.core.errors import UserError
from rankbench.judging import text_files
from rankbench.judging.sources import Source

ROWS = [("u1", "a", 0.5), ("u1", "b", -2.0), ("u2", "a", 1e-3), ("01", "NA", 3.0)]
FRAME = pandas.DataFrame(ROWS, columns=["user", "item", "score"])


def read(data, role="run", name="mine"):
    found = []
    for block in Source.of(data, name).blocks(role):
        users, items = (column.names[column.codes] for column in (block.users, block.items))
        found += zip(users, items, block.values.tolist(), strict=True)
    return found


def text(path, content):
    path.write_text(content)
    return path


FORMS = {
    "trec.run": "\n".join(f"{u} Q0 {i} 1 {s} tag" for u, i, s in ROWS) + "\n",
    "tabs.run": "\n".join(f"{u}\tQ0\t{i}\t1\t{s}\ttag" for u, i, s in ROWS),
    "wide.run": "\n".join(f"{u}   Q0 {i}  1   {s} tag" for u, i, s in ROWS),
    "plain.csv": "".join(f"{u},{i},{s}\n" for u, i, s in ROWS),
    "named.csv": "item,user,score,rank\n" + "".join(f"{i},{u},{s},7\n" for u, i, s in ROWS),
    "quoted.csv": 'user,item,score\n"u1","a",0.5\n"u1","b","-2.0"\nu2,a,1e-3\n"01",NA,3.0\n',
    "semicolons.csv": "query_id;doc_id;value\n" + "".join(f"{u};{i};{s}\n" for u, i, s in ROWS),
    "bom.csv": "\ufeffuser,item,score\n" + "".join(f"{u},{i},{s}\r\n" for u, i, s in ROWS),
    "recbole.inter": "user_id:token\titem_id:token\tscore:float\n" + "".join(f"{u}\t{i}\t{s}\n" for u, i, s in ROWS),
    "late.csv": "\n\nuser,item,score\n" + "\n".join(f"{u},{i},{s}" for u, i, s in ROWS),
    "blank.csv": "user,item,score\n\n" + "\n\n".join(f"{u},{i},{s}" for u, i, s in ROWS),
    "nested.json": json.dumps({"u1": {"a": 0.5, "b": -2}, "u2": {"a": 0.001}, "01": {"NA": 3}}),
    "records.json": json.dumps([{"query_id": u, "doc_id": i, "score": s} for u, i, s in ROWS]),
    "lines.jsonl": "\n".join(json.dumps({"query_id": u, "doc_id": i, "score": s}) for u, i, s in ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_text_form_gives_the_same_rows(tmp_path, form):
    assert read(text(tmp_path / form, FORMS[form])) == ROWS
    packed = tmp_path / f"{form}.gz"
    packed.write_bytes(gzip.compress(FORMS[form].encode()))
    assert read(packed) == ROWS


def test_tables_and_dictionaries_of_python_give_the_same_rows(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow

    FRAME.to_parquet(tmp_path / "run.parquet")
    assert read(tmp_path / "run.parquet") == ROWS
    assert read(FRAME) == ROWS
    assert read(pyarrow.Table.from_pandas(FRAME)) == ROWS
    assert read(json.loads(FORMS["nested.json"])) == ROWS
    assert read(FRAME.assign(user=FRAME.user.astype("category"))) == ROWS


def test_lists_by_user_as_lenskit_writes_them_are_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = [[{"item_id": 5, "rank": 1, "score": 3.0}, {"item_id": 7, "rank": 2, "score": 2.0}], [],
             [{"item_id": 7, "rank": 1, "score": 9.0}]]  # fmt: skip
    parquet.write_table(pyarrow.table({"user_id": [11, 12, 13], "items": lists}), tmp_path / "lists.parquet")
    assert read(tmp_path / "lists.parquet") == [("11", "5", 3.0), ("11", "7", 2.0), ("13", "7", 9.0)]


def test_matrices_have_their_places_as_ids(tmp_path):
    table = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, -1.0]])
    rows = [("0", "0", 0.5), ("0", "2", 2.0), ("1", "2", -1.0)]
    np.save(tmp_path / "run.npy", table)
    np.savez(tmp_path / "run.npz", scores=table)
    np.savez(tmp_path / "ids.npz", scores=table, users=["x", "y"], items=[7, 8, 9])
    sparse = scipy.sparse.csr_array(np.nan_to_num(table))
    scipy.sparse.save_npz(tmp_path / "sparse.npz", sparse)
    for one in (table, sparse, tmp_path / "run.npy", tmp_path / "run.npz", tmp_path / "sparse.npz"):
        assert sorted(read(one)) == rows
    assert read(tmp_path / "ids.npz") == [("x", "7", 0.5), ("x", "9", 2.0), ("y", "9", -1.0)]


@pytest.mark.parametrize("form", ["coo", "csc", "dia", "bsr", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_matrices_may_have_any_form(form, kind):
    matrix = getattr(scipy.sparse, f"{form}_{kind}")(np.array([[0.5, 0.0, 2.0], [0.0, 0.0, 1.0]]))
    rows = [row for row in read(matrix) if row[2]]  # some forms store zeros
    assert sorted(rows) == [("0", "0", 0.5), ("0", "2", 2.0), ("1", "2", 1.0)]


def test_ids_are_texts_so_that_1_and_01_are_two(tmp_path):
    assert [row[0] for row in read(text(tmp_path / "a.csv", "1,5,2\n01,5,2\n1.0,5,2\n"))] == ["1", "01", "1.0"]
    assert [row[0] for row in read(pandas.DataFrame({"user": [1, 2], "item": [3, 4], "score": [1.0, 2.0]}))] == [
        "1",
        "2",
    ]


def test_ranks_become_scores_that_fall(tmp_path):
    path = text(tmp_path / "a.csv", "user,item,rank\nu,a,1\nu,b,2\n")
    assert read(path) == [("u", "a", -1.0), ("u", "b", -2.0)]
    both = text(tmp_path / "b.csv", "user,item,score,rank\nu,a,5,1\n")
    assert read(both) == [("u", "a", 5.0)]
    assert read(f"{both}[rank=rank]") == [("u", "a", -1.0)]


def test_columns_may_be_named(tmp_path):
    path = text(tmp_path / "a.csv", "who,what,how,score\nu,a,5,1\n")
    assert read(f"{path}[user=who,item=what,score=how]") == [("u", "a", 5.0)]


def test_fields_in_quotes_may_hold_the_separator_also_in_the_heading(tmp_path):
    heading = '"user","title, year","item","score"\n'
    assert read(text(tmp_path / "a.csv", heading + 'u,"A, 1999",a,.5\n')) == [("u", "a", 0.5)]
    assert read(text(tmp_path / "b.csv", '"u";"a;b";".5"\n')) == [("u", "a;b", 0.5)]
    with pytest.raises(UserError, match="line 1 cannot be read"):
        read(text(tmp_path / "c.csv", '"u","' + 200_000 * "a"))


def test_a_truth_has_relevances_qrels_or_rows_alone(tmp_path):
    assert read(text(tmp_path / "a.qrels", "u 0 a 2\nu 0 b 0\n"), "truth") == [("u", "a", 2.0), ("u", "b", 0.0)]
    assert read(text(tmp_path / "a.csv", "user,item,score,rating\nu,a,.5,4\n"), "truth") == [("u", "a", 4.0)]
    assert read(text(tmp_path / "b.csv", "user,item\nu,a\n"), "truth") == [("u", "a", 1.0)]
    assert read(text(tmp_path / "c.csv", "u,a\nu,b\n"), "truth") == [("u", "a", 1.0), ("u", "b", 1.0)]


WRONG = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "heading alone": ("user,item,score\n", "is empty"),
    "no number": ("user,item,score\nu,a,1\nu,b,x\n", "line 3: 'x' is no number"),
    "no number after blank lines": ("user,item,score\n\n\nu,a,1\n\nu,b,x\n", "line 6: 'x' is no number"),
    "no number in the first line": ("u,a,x\n", "line 1 cannot be read"),
    "a score is missing": ("user,item,score\nu,a,1\nu,b,\n", "line 3: its score is missing or no number"),
    "late": ("\n\nuser,item,score\n\nu,a,1\nu,b,x\n", "line 6: 'x' is no number"),
    "a number more": ("user,item,score\n\nu,a,1\nu,b,2,5\n", "line 4 has 4 fields, not 3"),
    "a score is NaN": ("user,item,score\n\nu,a,NaN\n", "line 3: its score is missing or no number"),
    "a field is missing": ("user,item,score\nu,a,1\nu,b\n", "line 3: its score is missing"),
    "a field too much": ("user,item,score\nu,a,1\nu,b,2,3\n", "line 3 has 4 fields, not 3"),
    "a user is missing": ("user,item,score\nu,a,1\n,b,2\n", "line 3: the user is missing"),
    "an item is missing": ("user,item,score\nu,,1\n", "line 2: the item is missing"),
    "missing late": ("\nuser,item,score\nu,a,1\n\nu,b,\n", "line 5: its score is missing"),
    "no user": ("thing,item,score\nu,a,1\n", r"no column of users: its columns are thing, item, score; say which"),
    "no score": ("user,item,time\nu,a,1\n", r"has no scores: its columns are user, item, time"),
    "five fields": ("u a b c d\n", "line 1 cannot be read"),
    "commas in quotes": ('user,item,title,score\nu,a,"A, The",1\nu,b,"B, The",x\n', "line 3: 'x' is no number"),
    "two columns of scores": ("user,item,score,score\nu,a,1,2\n", "has 2 columns 'score'; rename all but one"),
    "JSON that ends": ('{"u": {"a": 1}', "is no JSON"),
    "JSON of numbers": ("[1, 2]", "holds no scores by user and item"),
    "JSON of texts": ('{"u": {"a": "x"}}', "scores that are no numbers"),
    "JSON without": ("{}", "is empty"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_refused_with_the_place(tmp_path, what):
    content, said = WRONG[what]
    with pytest.raises(UserError, match=said) as error:
        read(text(tmp_path / "a.run", content))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("u 0 a nan\n", "its relevance is missing or no number"),
        ("u 0 a inf\n", "its relevance is missing or no number"),
        ("user,item,rating\nu,a,\n", "line 2: its relevance is missing"),
    ],
)
def test_a_truth_needs_finite_relevances(tmp_path, content, said):
    with pytest.raises(UserError, match=said):
        read(text(tmp_path / "a.qrels", content), "truth")


def test_files_that_are_none_or_no_text_are_refused(tmp_path):
    (tmp_path / "a.run").write_bytes(b"\xff\xfe\x00u Q0 a 1 2 t\n")
    (tmp_path / "a.npz").write_bytes(b"no archive")
    (tmp_path / "a.npy").write_bytes(b"no array")
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x00\x00")
    np.savez(tmp_path / "two.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    np.savez(tmp_path / "ids.npz", scores=np.ones((2, 2)), users=["a"])
    np.savez(tmp_path / "bytes.npz", scores=np.ones((1, 2)), users=[b"\xff"])
    np.save(tmp_path / "flat.npy", np.ones(3))
    scipy.sparse.save_npz(tmp_path / "flat.npz", scipy.sparse.coo_array(np.ones(3)))
    (tmp_path / "a.json").write_text('[{"user": {"id": 1}, "item": 2, "score": 3}]')
    for name, said in {
        "a.run": "no text", "a.npz": "no archive", "a.npy": "no array", "a.gz": "no text", "b.run": "is not here",
        "two.npz": "holds a, b", "ids.npz": "with ids of 1 users", "flat.npy": "1 dimensions", "": "is no file",
        "bytes.npz": "no archive", "flat.npz": "1 dimensions", "a.json": "column 'user' holds lists or dictionaries",
    }.items():  # fmt: skip
        with pytest.raises(UserError, match=said):
            read(tmp_path / name)


def test_settings_of_columns_that_are_none_are_refused(tmp_path):
    path = text(tmp_path / "a.csv", "user,item,score\nu,a,1\n")
    for setting, said in (("usr=user", "unknown setting 'usr'"), ("user=who", "no column 'who'; it has user, item")):
        with pytest.raises(UserError, match=said):
            read(f"{path}[{setting}]")


def test_a_run_may_hold_relevances_alone(tmp_path):
    assert read(text(tmp_path / "a.csv", "user,item,relevance\nu,a,2\n")) == [("u", "a", 2.0)]


def test_whether_relevances_stand_beside_scores_is_seen_in_every_form(tmp_path):
    both = FRAME.assign(relevance=1.0)
    both.to_parquet(tmp_path / "both.parquet")
    np.save(tmp_path / "scores.npy", np.ones((2, 2)))
    data = (both, FRAME, tmp_path / "both.parquet", tmp_path / "scores.npy")
    assert [Source.of(one, "mine").has_truth() for one in data] == [True, False, True, False]


def test_parquet_that_is_none_or_cannot_be_read_here_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(UserError, match=r"a\.parquet is no Parquet file: "):
        read(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match="reading Parquet needs pyarrow; pip install"):
        read(tmp_path / "a.parquet")


def test_json_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.json").write_text(FORMS["nested.json"], encoding="utf-8-sig")
    assert read(tmp_path / "a.json") == ROWS


def test_packed_json_that_ends_too_soon_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    packed = gzip.compress(json.dumps({user: {"item": score} for user, score in enumerate(rng.random(9000))}).encode())
    (tmp_path / "a.json.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match=r"a\.json\.gz cannot be read: Compressed file ended"):
        read(tmp_path / "a.json.gz")


def test_a_packed_file_that_is_damaged_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"user,item,score")[:10] + b"\xff" * 50)
    with pytest.raises(UserError, match=r"a\.csv\.gz is no text: Error -3 while decompressing data"):
        read(tmp_path / "a.csv.gz")


def test_a_packed_file_that_ends_too_soon_and_a_disk_that_fails_are_refused(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = "".join(f"u{n},i{n},{score}\n" for n, score in enumerate(rng.random(20_000)))
    packed = gzip.compress(f"user,item,score\n{rows}".encode())
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match=r"a\.csv\.gz cannot be read: Compressed file ended"):
        read(tmp_path / "a.csv.gz")

    def fail(path):
        raise OSError(5, "Input/output error")

    path = text(tmp_path / "b.csv", "user,item,score\nu,a,1\n")
    monkeypatch.setattr(text_files.regular, "opened", fail)
    with pytest.raises(UserError, match=r"cannot read .*b\.csv: Input/output error"):
        read(path)


def test_objects_that_hold_no_scores_are_refused():
    for data, said in (
        (object(), "holds no scores"),
        ({"u": 1}, "dictionary of dictionaries"),
        (np.ones((2, 2), "U1"), "not numbers"),
        (FRAME.assign(user=[1.5, 2.0, 3.0, 4.0]), "decimal numbers such as 1.5"),
        (FRAME.assign(user=[1, "1", 2, "x"]), "partly texts and partly numbers"),
        (FRAME.assign(score=[1, None, 2, 3]), "row 2: its score is missing"),
        ({1: {"a": 1}, "1": {"a": 2}}, "equal as texts"),
    ):
        with pytest.raises(UserError, match=said):
            read(data)
