"""Importing a user's own copy: completely or not at all; and the folders that are searched for files."""

import zipfile

import pytest

from rankbench.core.errors import UserError
from rankbench.data.files import File, Files
from rankbench.data.importing import take
from rankbench.data.origins import Generated
from rankbench.data.publications import Publication

THING = Publication("thing", "", "", "", (("ratings.txt", "ratings.txt.gz"), ("items.txt",)), how="ask its owner")


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Empty folders for the user's own data and for the cache."""
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path / "own"))


@pytest.fixture
def copy(tmp_path):
    """A folder with both files."""
    folder = tmp_path / "copy"
    (folder / "deeper").mkdir(parents=True)
    (folder / "ratings.txt").write_text("1 2 3")
    (folder / "deeper" / "items.txt").write_text("2 Two")
    return folder


def content(tmp_path):
    folder = tmp_path / "cache/data/thing"
    return {path.name: path.read_text() for path in folder.glob("*")} if folder.exists() else None


def test_a_folder_is_copied_and_found(copy, tmp_path):
    folder = take("thing", THING, copy, lambda: None)
    assert folder == tmp_path / "cache/data/thing"
    assert content(tmp_path) == {"ratings.txt": "1 2 3", "items.txt": "2 Two"}
    assert THING.missing() is None
    assert sorted(path.name for path in folder.parent.iterdir()) == ["thing"]


def test_an_archive_is_copied_as_it_is_and_read_in_place(tmp_path):
    with zipfile.ZipFile(tmp_path / "thing-v1.zip", "w") as archive:
        archive.writestr("thing/ratings.txt", "1 2 3")
        archive.writestr("../../items.txt", "2 Two")
    take("thing", THING, tmp_path / "thing-v1.zip", lambda: None)
    assert THING.files().find("items.txt").read() == b"2 Two"
    everything = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert everything == {"thing-v1.zip"}  # the member's path led nowhere


def test_an_import_may_come_in_parts(copy, tmp_path):
    with pytest.raises(UserError, match="does not complete thing"):
        take("thing", THING, copy / "ratings.txt", lambda: None)
    assert content(tmp_path) is None
    take("thing", THING, copy, lambda: None)
    (copy / "ratings.txt").write_text("9 9 9")
    take("thing", THING, copy / "ratings.txt", lambda: None)
    assert content(tmp_path) == {"ratings.txt": "9 9 9", "items.txt": "2 Two"}


def test_what_does_not_load_is_not_kept_and_what_was_there_comes_back(copy, tmp_path):
    take("thing", THING, copy, lambda: None)
    (copy / "ratings.txt").write_text("broken")

    def load():
        raise UserError("line 1: broken")

    with pytest.raises(UserError, match="line 1: broken"):
        take("thing", THING, copy, load)
    assert content(tmp_path) == {"ratings.txt": "1 2 3", "items.txt": "2 Two"}
    assert sorted(path.name for path in (tmp_path / "cache/data").iterdir()) == ["thing"]


def test_what_is_no_file_is_not_imported(copy):
    with pytest.raises(UserError, match="btl needs no import"):
        take("btl", Generated("200 users"), copy, lambda: None)


def test_nothing_to_import_is_said(tmp_path):
    with pytest.raises(UserError, match="no file or folder"):
        take("thing", THING, tmp_path / "nowhere", lambda: None)
    (tmp_path / "both/old").mkdir(parents=True)
    (tmp_path / "both/items.txt").touch()
    (tmp_path / "both/old/items.txt").touch()
    with pytest.raises(UserError, match=r"several files items.txt"):
        take("thing", THING, tmp_path / "both", lambda: None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="is empty"):
        take("thing", THING, tmp_path / "empty", lambda: None)


def test_the_users_own_folder_comes_before_the_cache(copy, tmp_path):
    take("thing", THING, copy, lambda: None)
    own = tmp_path / "own/thing"
    own.mkdir(parents=True)
    (own / "ratings.txt").write_text("mine")
    assert THING.files().find("ratings.txt").read() == b"mine"
    assert THING.files().find("items.txt").read() == b"2 Two"


def test_an_archive_beside_the_folder_is_found(tmp_path):
    (tmp_path / "own").mkdir()
    with zipfile.ZipFile(tmp_path / "own/thing.zip", "w") as archive:
        archive.writestr("thing/ratings.txt", "zipped")
    assert str(Files.of("thing").find("ratings.txt")).endswith("own/thing.zip/thing/ratings.txt")


def test_a_file_that_is_nowhere_is_named_with_the_folders_and_the_command(tmp_path):
    with pytest.raises(UserError, match=r"no file a.txt or b.txt in .*own/thing or .*data/thing: rankbench data fetch"):
        Files.of("thing", "rankbench data fetch thing").find("a.txt", "b.txt")


@pytest.mark.parametrize("name", ["cut.zip", "cut.gz"])
def test_a_cut_archive_is_named(tmp_path, name):
    path = tmp_path / name
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("ratings.txt", "1 2 3\n" * 10_000)
    else:
        import gzip

        path.write_bytes(gzip.compress(b"1 2 3\n" * 10_000))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(UserError, match=rf"{name}.* is cut or damaged"):
        File(path, "ratings.txt" if name.endswith("zip") else None).read()


def test_the_stamp_changes_with_any_file(copy, tmp_path):
    take("thing", THING, copy, lambda: None)
    before = THING.files().stamp()
    assert THING.files().stamp() == before
    (tmp_path / "cache/data/thing/items.txt").write_text("2 Too")
    assert THING.files().stamp() != before


def test_what_is_checked_is_what_was_given_and_not_what_lies_elsewhere(copy, tmp_path):
    own = tmp_path / "own/thing"
    own.mkdir(parents=True)
    for name in ("ratings.txt", "items.txt"):
        (own / name).write_text("right")
    (copy / "ratings.txt").write_text("wrong")
    read = []

    def load():
        read.append(THING.files().find("ratings.txt").read())
        raise UserError("line 1: wrong")

    with pytest.raises(UserError, match="line 1: wrong"):
        take("thing", THING, copy, load)
    with pytest.raises(UserError, match="does not complete thing"):
        take("thing", THING, copy / "ratings.txt", load)
    assert read == [b"wrong"] and content(tmp_path) is None
    assert THING.files().find("ratings.txt").read() == b"right"  # as before


def test_a_cache_that_cannot_be_written_is_named_and_left_as_it_was(copy, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=rf"cannot copy {copy} to {tmp_path}/cache/data/thing: "):
        take("thing", THING, copy, lambda: None)
    assert (tmp_path / "cache").read_text() == "a file where the folder should be"


def test_a_member_that_is_encrypted_is_to_be_unpacked_by_hand(tmp_path):
    path = tmp_path / "thing.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("items.txt", "2 Two")
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1  # the flag of an encrypted member
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"thing.zip/items.txt cannot be read \(.*encrypted.*\): unpack it by hand"):
        File(path, member="items.txt").read()
