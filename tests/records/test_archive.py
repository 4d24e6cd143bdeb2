"""Archives come from strangers: whatever is wrong with one is one clear line, and nothing is written or left behind."""

import io
import json
import random
import stat
import struct
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from helpers import MACHINE, SPACES, TINY, around, made_up, prepared, silent, store_in, tiny, tuned

from rankbench.arrays.npz import read_npz
from rankbench.core.errors import UserError
from rankbench.core.leftovers import HELD, partial_of
from rankbench.experiments.spaces import Tune
from rankbench.records.archive import METADATA, Largest, opened, sha256_of, unpack, write
from rankbench.records.store import ResultsFolder
from rankbench.report.crate import files_of, there
from rankbench.report.render.tables import notes, sheet, to_csv, to_markdown
from rankbench.report.rows import rows
from rankbench.report.study import study


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The files of an archive of made-up results, by their names in it, as bytes."""
    return parts_of(tmp_path_factory.mktemp("made"), TINY)


def parts_of(out, experiment):
    """The files of an archive of an experiment's made-up results, by their names in it, as bytes."""
    run = prepared(out, experiment)
    run.open()
    for cell in (*run.plan.cells, *run.plan.trials):
        run.keep(made_up(cell, 0.5), around(cell, 0.5))
    store = store_in(out)
    (plan,) = store.plans()
    files = files_of(store, plan, study(ResultsFolder(out, silent), "tiny"))
    return {name: content if isinstance(content, bytes) else content.read_bytes() for name, content in files.items()}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A folder for temporary folders, which must be empty at the end, beside nothing else that was written."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def test_trials_may_be_validated_by_the_experiments_own_split(tmp_path):
    tune = Tune(SPACES, trials=2, metric="ndcg@5", validation="again")
    write(tmp_path / "tuned.zip", parts_of(tmp_path / "out", tuned(tune, splits=("entries[test=0.3]",))))
    with opened(tmp_path / "tuned.zip") as folder:
        assert len(study(ResultsFolder(folder, silent), "tiny").trials) == 8


def described(parts, **changes):
    """The parts with files changed, added or (for None) removed, and metadata that describe them as they are."""
    files = {name: content for name, content in {**parts, **changes}.items() if content is not None}
    metadata = json.loads(files.pop(METADATA))
    graph = [node for node in metadata["@graph"] if "sha256" not in node]
    graph += [{"@id": name, "@type": "File", "sha256": sha256_of(content)} for name, content in files.items()]
    return {**files, METADATA: json.dumps({**metadata, "@graph": graph}).encode()}


def zipped(path, files, **attributes):
    """A zip file of these pairs of names (or entries) and contents, whatever they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, content)
    return path


def refused(path, limits=None):
    """The line that says what is wrong with an archive."""
    with pytest.raises(UserError) as error, opened(path, limits):
        pass
    line = str(error.value)
    assert "\n" not in line and path.name in line and line.isascii()
    return line


def test_an_archive_opens_as_a_folder_and_is_removed(tmp_path, parts, alone):
    path = zipped(tmp_path / "a.zip", parts)
    with opened(path) as out:
        found = study(ResultsFolder(out, silent), "tiny")
        assert len(found.results) == 4 and alone in out.parents
        (plan,) = store_in(out).plans()
        assert there(plan, store_in(out)) == (4, 4)


@pytest.mark.slow
def test_what_is_written_is_always_the_same_bytes(tmp_path, parts):
    write(tmp_path / "a.zip", parts)
    write(tmp_path / "b.zip", dict(reversed(parts.items())))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.namelist() == sorted(parts)


def test_an_archive_is_never_overwritten_and_a_full_disk_leaves_none(tmp_path, parts, monkeypatch):
    write(tmp_path / "a.zip", parts)
    with pytest.raises(UserError, match="exists already"):
        write(tmp_path / "a.zip", parts)

    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(UserError, match="No space left on device"):
        write(tmp_path / "b.zip", parts)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_name_that_no_archive_may_hold_is_refused_when_writing(tmp_path):
    with pytest.raises(UserError, match="cannot be put into an archive"):
        write(tmp_path / "a.zip", {"results/a:b/plans/x.json": b""})


BAD_NAMES = [
    "../out.txt", "results/../../out.txt", "/etc/out.txt", "results//x", "./x", "a/./b", "C:/out.txt", "a\\..\\b",
    "con", "results/NUL.txt", "lpt1.json", "a/com9", "trailing.", "a /b", "line\nbreak", "bell\x07", "star*", "pipe|",
    "x" * 401,
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_paths_that_climb_out_or_are_not_plain_are_refused(tmp_path, parts, alone, name):
    path = zipped(tmp_path / "a.zip", described(parts, **{name: b"boo"}))
    assert "nothing was unpacked" in refused(path)
    assert {one.name for one in tmp_path.rglob("*")} == {"a.zip", "temporary"}


@pytest.mark.parametrize(
    ("name", "evil", "line"),
    [
        (b"zeroQbyte", b"zero\0byte", "letters that no plain path has"),
        (b"ZaZa", b"\0aZa", "it has no name; nothing was unpacked"),
    ],
)
def test_a_name_with_a_zero_byte_is_refused(tmp_path, parts, alone, name, evil, line):
    path = zipped(tmp_path / "a.zip", [*parts.items(), (name.decode(), b"x")])
    path.write_bytes(path.read_bytes().replace(name, evil))
    assert line in refused(path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_devices_are_refused(tmp_path, parts, alone, kind):
    entry = zipfile.ZipInfo("results/link.json")
    entry.external_attr = (kind | 0o777) << 16
    path = zipped(tmp_path / "a.zip", [*described(parts, **{"results/link.json": b"/etc"}).items(), (entry, b"/etc")])
    assert "it is a link or a device" in refused(path)


@pytest.mark.parametrize("name", ["table.csv", "TABLE.csv"])
def test_a_file_that_is_there_twice_is_refused(tmp_path, parts, alone, name):
    path = zipped(tmp_path / "a.zip", [*parts.items(), (name, b"other")])
    assert "there twice" in refused(path)


def test_too_many_files_or_bytes_are_refused_by_what_is_declared(tmp_path, parts, alone):
    path = zipped(tmp_path / "a.zip", described(parts, bomb=bytes(10**7)))
    assert path.stat().st_size < 2 * 10**6 + sum(map(len, parts.values()))
    assert "would unpack to" in refused(path, Largest(size=10**7))
    assert "at most 5" in refused(path, Largest(files=5))


@pytest.mark.parametrize(
    ("holds", "declares", "line"),
    [
        (10**7, 1000, "damaged"),
        (10**5, 10**5 + 1, "declares 100001 bytes for 'odd', and there are others"),
    ],
)
def test_a_file_that_holds_more_or_less_than_declared_is_noticed_while_unpacking(
    tmp_path, parts, alone, holds, declares, line
):
    path = zipped(tmp_path / "a.zip", described(parts, odd=bytes(holds)))
    whole = path.read_bytes()
    assert whole.count(struct.pack("<L", holds)) == 2  # in the local header and in the directory
    path.write_bytes(whole.replace(struct.pack("<L", holds), struct.pack("<L", declares)))
    assert line in refused(path, Largest(size=10**7))


def test_a_disk_without_room_is_one_line(tmp_path, parts, alone, monkeypatch):
    path = zipped(tmp_path / "a.zip", parts)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 10})())
    assert "make room" in refused(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_damaged(tmp_path, parts, alone, share):
    path = zipped(tmp_path / "a.zip", parts)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert "is damaged or no archive" in refused(path)


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_of_rankbench_is_refused(tmp_path, alone, content):
    (tmp_path / "a.zip").write_bytes(content)
    assert "no archive of rankbench" in refused(tmp_path / "a.zip")


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"@graph": 3}', b'{"@graph": [3]}', b"\xff", b"[" * 10**5])
def test_metadata_that_cannot_be_read_are_refused(tmp_path, parts, alone, content):
    path = zipped(tmp_path / "a.zip", {**parts, METADATA: content})
    assert "no archive of rankbench" in refused(path)


@pytest.mark.slow
def test_a_changed_a_missing_and_an_added_file_are_named(tmp_path, parts, alone):
    (name,) = [name for name in parts if "/plans/" in name]
    changed = zipped(tmp_path / "a.zip", {**parts, name: parts[name].replace(b'"seed": 0', b'"seed": 1')})
    assert f"the SHA-256 of '{name}' is not the one" in refused(changed)
    missing = zipped(tmp_path / "b.zip", {one: content for one, content in parts.items() if one != name})
    assert f"'{name}' is missing" in refused(missing)
    added = zipped(tmp_path / "c.zip", {**parts, "results/tiny/cells/x.json": b"{}"})
    assert "'results/tiny/cells/x.json' is undescribed" in refused(added)


@pytest.mark.parametrize(
    ("honest", "evil", "named"),
    [
        *((b"rankbench.solvers.sgd:SGD", home.encode(), home)
          for home in ("os:system", "subprocess:Popen", "rankbench.records.store:Store", "builtins:eval", "")),
        (b'"label": "ndcg@5"', b'"label": "/usr/lib/evil.py:Metric"', "/usr/lib/evil Metric"),
    ],
)  # fmt: skip
def test_a_class_that_is_no_solver_data_set_split_or_metric_is_never_loaded(
    tmp_path, parts, alone, honest, evil, named
):
    (name,) = [name for name in parts if "/plans/" in name]
    changed = parts[name].replace(honest, evil)
    assert changed != parts[name]
    assert f"names the class {named!r}" in refused(zipped(tmp_path / "a.zip", described(parts, **{name: changed})))


@pytest.mark.slow
def test_an_archive_of_no_run_or_of_several_is_refused(tmp_path, parts, alone):
    (plan,) = [name for name in parts if "/plans/" in name]
    none = zipped(tmp_path / "a.zip", described(parts, **{plan: None}))
    assert "it holds 0 plans, not one" in refused(none)
    two = zipped(tmp_path / "b.zip", described(parts, **{plan.replace("tiny", "other"): parts[plan]}))
    assert "it holds 2 plans, not one" in refused(two)


@pytest.mark.slow
def test_arrays_that_would_be_larger_than_their_file_are_refused(tmp_path, parts, alone):
    name = next(name for name in parts if name.endswith(".npz"))
    bomb = io.BytesIO()
    np.savez_compressed(bomb, **{"ndcg@5": np.zeros(10**6)})
    for content in (bomb.getvalue(), b"no npz"):
        path = zipped(tmp_path / "a.zip", described(parts, **{name: content}))
        assert "arrays are damaged, or would be larger than the file" in refused(path)


@pytest.mark.parametrize("length", [6, 10**14, 2**62, 10**25])
def test_an_array_that_declares_more_than_it_has_is_damaged(tmp_path, length):
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"shape": (length,), "fortran_order": False, "descr": "<f8"})
    zipped(tmp_path / "a.npz", {"values.npy": array.getvalue() + bytes(40)})
    with pytest.raises(UserError, match=r"a\.npz is damaged"):
        read_npz(tmp_path / "a.npz")


def test_what_a_killed_process_left_behind_is_removed(tmp_path, parts, alone):
    left = partial_of(alone / "rankbench-archive")
    (left / "results").mkdir(parents=True)
    (left / HELD).touch()
    with opened(zipped(tmp_path / "a.zip", parts)):
        assert not left.exists()


def spoiled(whole, seed):
    """The bytes of an archive, with some of them changed, removed or doubled."""
    draw, data = random.Random(seed), bytearray(whole)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data)) if draw.random() < 0.5 else len(data) - 1 - draw.randrange(min(3000, len(data)))
        if (what := draw.random()) < 0.7:
            data[at] = draw.randrange(256)
        elif what < 0.85:
            del data[at : at + draw.randint(1, 50)]
        else:
            data[at:at] = data[at : at + draw.randint(1, 50)]
    return bytes(data)


def assert_opens_whole_or_says_why(folder, path, parts):
    """Unpack an archive: either all files come out as they were, or the error is one line."""
    try:
        unpack(path, folder, Largest(size=10**8))
    except (UserError, OSError) as error:
        assert isinstance(error, UserError), error
        assert "\n" not in str(error)
    else:
        for name, content in parts.items():
            assert name == METADATA or (folder / name).read_bytes() == content


MANY = pytest.param(range(40, 4000), marks=[pytest.mark.trust, pytest.mark.slow])


@pytest.mark.parametrize("seeds", [range(40), MANY])
def test_random_damage_never_gives_wrong_results(tmp_path, parts, seeds):
    small = described({name: content for name, content in parts.items() if name != "page.html"})
    buffer = io.BytesIO()
    zipped(buffer, small)
    for seed in seeds:
        path, folder = tmp_path / f"{seed}.zip", tmp_path / str(seed)
        folder.mkdir()
        path.write_bytes(spoiled(buffer.getvalue(), seed))
        assert_opens_whole_or_says_why(folder, path, small)


def drawn_run(out, seed):
    """A folder with made-up results that differ in whatever a table shows: values, endings, machines, gaps."""
    draw = random.Random(seed)
    solvers = draw.sample(["global[lam=10]", "sgd[rank=2]", "sgd[rank=3]", "mf", "bpr"], draw.randint(1, 3))
    metrics = draw.sample(["pairwise-error", "ndcg@5", "kendall"], draw.randint(1, 2))
    title = draw.choice(["plain", "schön | **bold** <b>", "\u202eodd", "a\nb"])
    run = prepared(
        out, tiny(solvers=tuple(solvers), metrics=tuple(metrics), repetitions=draw.randint(1, 3), title=title)
    )
    run.open()
    bad = {"status": "failed", "reason": "boom <&>", "curve": (), "counted": ()}
    for cell in run.plan.cells:
        value = draw.choice([draw.random(), draw.random(), float("nan")])
        machine = replace(MACHINE, cpu=draw.choice(["one", "other"]))
        if draw.random() < 0.85:
            changes = bad if draw.random() < 0.15 else {}
            run.keep(made_up(cell, value, machine=machine, wall=draw.random(), **changes), around(cell, value))


@pytest.mark.trust
@pytest.mark.parametrize("seed", range(12))
def test_every_table_of_an_archive_is_that_of_the_folder(tmp_path, alone, seed):
    drawn_run(tmp_path / "out", seed)
    store = store_in(tmp_path / "out")
    (plan,) = store.plans()
    before = study(ResultsFolder(tmp_path / "out", silent), "tiny")
    write(tmp_path / "a.zip", files_of(store, plan, before))
    with opened(tmp_path / "a.zip") as out:
        after = study(ResultsFolder(out, silent), "tiny")
        assert to_csv(rows(after)) == to_csv(rows(before))
        assert to_markdown(sheet(after)) == to_markdown(sheet(before)) and notes(after) == notes(before)
        assert content_of(out / "tiny" / "cells") == content_of(store.cells)


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_file_of_results_that_cannot_be_read_is_named(tmp_path, parts, alone):
    name = next(name for name in parts if "/cells/" in name and name.endswith(".json"))
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        path = zipped(tmp_path / "a.zip", described(parts, **{name: content}))
        assert f"holds {name.rpartition('/')[2]}, which cannot be read" in refused(path)


def test_a_disk_that_fails_while_unpacking_is_one_line(tmp_path, parts, alone, monkeypatch):
    def fails(source, file, most):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rankbench.records.archive._poured", fails)
    line = refused(zipped(tmp_path / "a.zip", parts))
    assert line.startswith("cannot unpack ") and line.endswith(": No space left on device")


def test_an_archive_that_packs_too_well_to_hold_results_is_refused(tmp_path, parts, alone, monkeypatch):
    monkeypatch.setattr("rankbench.records.archive._SMALL", 0)
    monkeypatch.setattr("rankbench.records.archive._RATIO", 2)
    path = zipped(tmp_path / "a.zip", described(parts, bomb=bytes(10**7)))
    assert "more than 2 times its own size: results do not" in refused(path)
