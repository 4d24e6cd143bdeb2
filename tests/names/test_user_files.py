"""Classes from a user's own files: loading, checks, identity by content, and moved files."""

import hashlib
import os
import pickle
import subprocess
import sys
from typing import Literal, get_type_hints

import pytest
from names.things import OWN_FILE, THINGS

from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.names import settings_of
from rankbench.names.user_files import class_from_file, digest_of
from rankbench.solvers import SOLVERS


@pytest.fixture
def own_file(tmp_path):
    """A Python file with a record of the user's own."""
    path = tmp_path / "mine.py"
    path.write_text(OWN_FILE)
    return path


def test_a_class_comes_out_of_a_file_of_the_users_own(own_file, monkeypatch):
    record = SOLVERS.make(f"{own_file}:Mine[rank=7]")
    assert (type(record).__name__, settings_of(record)) == ("Mine", {"rank": 7})
    monkeypatch.chdir(own_file.parent)
    assert settings_of(SOLVERS.make("mine.py:Mine")) == {"rank": 3}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Mien", r"unknown solver in .*mine\.py: 'Mien'; did you mean 'Mine'"),
        ("Mine[rnak=3]", r"unknown setting of .*mine\.py:Mine: 'rnak'; did you mean 'rank'"),
        ("Mine[rank=x]", r"mine\.py:Mine: rank=x is not of type int"),
        ("Plain", r"mine\.py:Plain is not a dataclass"),
        ("Plain[rank=3]", r"mine\.py:Plain is not a dataclass"),
        ("function", r"mine\.py:function is not a dataclass"),
    ],
)
def test_what_a_file_of_the_users_own_lacks_is_said(own_file, name, message):
    with pytest.raises(UserError, match=message):
        SOLVERS.make(f"{own_file}:{name}")


def test_classes_that_a_file_only_imports_are_not_offered(tmp_path):
    (tmp_path / "importing.py").write_text("from rankbench import Ratings, Step\n")
    with pytest.raises(UserError, match="defines no class, so there is no solver 'Step_' in it"):
        SOLVERS.make(f"{tmp_path}/importing.py:Step_")


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match=r"no file '.*absent\.py' to take the solver 'Mine' from"):
        SOLVERS.make(f"{tmp_path}/absent.py:Mine")


@pytest.mark.parametrize(("text", "cause"), [("import nowhere", "ModuleNotFoundError"), ("1 +", "SyntaxError")])
def test_a_file_that_cannot_be_imported_says_why(tmp_path, text, cause):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(UserError, match=rf"cannot import .*broken\.py: {cause}: "):
        SOLVERS.make(f"{tmp_path}/broken.py:Mine")


def test_a_solver_that_declares_nothing_is_told_what_to_say(own_file):
    with pytest.raises(UserError, match="has no learns_from, needs_features, determinism, version, steps"):
        SOLVERS.make(f"{own_file}:Undeclared")


def test_the_error_of_a_file_that_cannot_be_imported_comes_again(tmp_path):
    (tmp_path / "broken.py").write_text("import nowhere")
    for _ in range(2):  # no half of a module is left behind
        with pytest.raises(UserError, match="ModuleNotFoundError"):
            SOLVERS.make(f"{tmp_path}/broken.py:Mine")


# ---- what a file is known by ----


def own(folder, name="mine.py", text=OWN_FILE):
    """The name of the class in a file of this text, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return f"{folder / name}:Mine"


def test_the_same_content_is_the_same_wherever_it_lies_and_whatever_the_file_is_called(tmp_path, monkeypatch):
    first, moved = own(tmp_path / "a"), own(tmp_path / "b")
    renamed = own(tmp_path / "b", "yours.py")
    named = SOLVERS.resolve(f"{first}[rank=7]")
    assert {SOLVERS.resolve(f"{text}[rank=7]").identity for text in (first, moved, renamed)} == {named.identity}
    assert {SOLVERS.resolve(text).base for text in (first, moved, renamed)} == {named.base}
    monkeypatch.chdir(tmp_path / "a")
    assert SOLVERS.resolve("mine.py:Mine[rank=7]").identity == named.identity
    assert str(tmp_path) not in named.identity and named.identity.endswith(".py:Mine[rank=7]")
    assert SOLVERS.resolve(first).identity != named.identity


def test_an_edited_file_is_something_new_and_edited_back_the_old(tmp_path):
    before = SOLVERS.resolve(own(tmp_path))
    edited = SOLVERS.resolve(own(tmp_path, text=OWN_FILE.replace("rank: int = 3", "rank: int = 30")))
    assert edited.identity != before.identity and edited.base != before.base
    assert (before.setting("rank"), edited.setting("rank")) == (3, 30)
    assert edited.record.rank == 30
    assert SOLVERS.resolve(own(tmp_path)).identity == before.identity


def test_an_edit_that_leaves_a_file_as_long_as_it_was_is_noticed(tmp_path):
    before = SOLVERS.resolve(own(tmp_path))
    path = tmp_path / "mine.py"
    changed = path.stat().st_mtime_ns + 10**9
    path.write_text(OWN_FILE.replace("rank: int = 3", "rank: int = 4"))
    os.utime(path, ns=(changed, changed))
    assert SOLVERS.resolve(f"{path}:Mine").base != before.base


def test_stored_results_know_a_file_by_sixteen_digits(tmp_path):
    text = own(tmp_path)
    digits = hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()[:16]
    assert SOLVERS.resolve(text).base == f"sha256-{digits}.py:Mine"


def test_two_classes_of_one_file_are_two_things(tmp_path):
    text = OWN_FILE.replace("class Plain:", "@dataclass(frozen=True)\nclass Other(Mine):")
    mine = own(tmp_path, text=text)
    assert SOLVERS.resolve(mine).identity != SOLVERS.resolve(mine.replace(":Mine", ":Other")).identity


WITH_TYPES_AS_TEXTS = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar, Literal
from rankbench import Determinism, Ratings

Kind = Literal["{kind}"]

@dataclass(frozen=True)
class Mine:
    kind: Kind = "{kind}"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    def steps(self, train, rng, threads=1):
        yield
"""


def test_two_files_of_the_same_name_stand_side_by_side_in_one_process(tmp_path):
    texts = [own(tmp_path / kind, text=WITH_TYPES_AS_TEXTS.format(kind=kind)) for kind in ("red", "green")]
    red, green = map(SOLVERS.find, texts)
    assert red is not green
    assert get_type_hints(red)["kind"] == Literal["red"]
    assert get_type_hints(green)["kind"] == Literal["green"]
    assert [SOLVERS.make(text).kind for text in texts] == ["red", "green"]
    assert type(SOLVERS.make(texts[0])) is red  # a file is run once
    assert pickle.loads(pickle.dumps(red())) == red()
    with pytest.raises(UserError, match="unknown value"):
        SOLVERS.make(f"{texts[0]}[kind=green]")


# ---- in another process ----

MAKE = """
import pickle, sys
from rankbench.core.errors import UserError
named = pickle.load(open(sys.argv[1], "rb"))
try:
    record = named.record
except UserError as error:
    print(error)
else:
    print(type(record).__name__, vars(record), record.steps(None, None) is not None)
"""


def made_elsewhere(named, folder):
    """What another process makes of a pickled name, from a folder where no relative path leads anywhere."""
    (folder / "named.pickle").write_bytes(pickle.dumps(named))
    (folder / "empty").mkdir(exist_ok=True)
    command = [sys.executable, "-c", MAKE, str(folder / "named.pickle")]
    return subprocess.run(command, cwd=folder / "empty", capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_a_name_survives_being_pickled_and_its_record_can_be_made_in_another_process(here):
    own(here)
    named = SOLVERS.resolve("mine.py:Mine[rank=7]")
    assert pickle.loads(pickle.dumps(named)) == named
    assert made_elsewhere(named, here) == "Mine {'rank': 7} True"


def test_a_file_that_is_edited_after_its_name_was_read_is_refused_elsewhere_and_here(tmp_path):
    named = SOLVERS.resolve(own(tmp_path))
    own(tmp_path, text=OWN_FILE + "# edited\n")
    message = f"{tmp_path / 'mine.py'} changed while it was in use: run again"
    assert made_elsewhere(named, tmp_path) == message
    with pytest.raises(UserError) as error:
        _ = named.record
    assert str(error.value) == message


# ---- files of data ----


@pytest.fixture(params=["csv", "pairs"])
def kind(request):
    """Ratings or comparisons of the user's own."""
    return request.param


def written(folder, text, name="x.csv"):
    """The path of a file of this text."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


ROWS = "1,2,3\n1,3,4\n"


def test_a_file_of_data_is_known_by_its_content(tmp_path, kind):
    paths = [
        written(tmp_path / "a", ROWS),
        written(tmp_path / "b", ROWS),
        written(tmp_path / "b", ROWS, "renamed.txt"),
    ]
    found = {DATASETS.resolve(f"{kind}:{path}").identity for path in paths}
    (identity,) = found
    assert identity.startswith(f"{kind}:sha256-") and str(tmp_path) not in identity
    assert DATASETS.resolve(f"{kind}:{paths[0]}[separator=comma]").identity != identity
    written(tmp_path / "a", ROWS + "2,2,1\n")
    edited, untouched = (DATASETS.resolve(f"{kind}:{path}").identity for path in paths[:2])
    assert edited != identity == untouched


def test_a_file_of_features_is_known_by_its_content_too(tmp_path, kind):
    data = written(tmp_path / "a", ROWS)
    paths = [written(tmp_path / folder, "2,0.5\n3,0.25\n", "items.csv") for folder in ("a", "b")]
    (identity,) = {DATASETS.resolve(f"{kind}:{data}[features={path}]").identity for path in paths}
    assert str(tmp_path) not in identity
    written(tmp_path / "b", "2,0.5\n3,0.125\n", "items.csv")
    assert DATASETS.resolve(f"{kind}:{data}[features={paths[1]}]").identity != identity
    assert DATASETS.resolve(f"{kind}:{data}").identity != identity


def test_a_file_that_is_not_there_is_known_by_its_path(tmp_path, kind):
    path = tmp_path / "gone.csv"
    assert DATASETS.resolve(f"{kind}:{path}").identity.startswith(f"{kind}:{path}[")
    assert f"features={path}" in DATASETS.resolve(f"{kind}:{path}[features={path}]").identity


def test_people_read_paths_and_the_record_has_them(tmp_path, kind):
    path = written(tmp_path, ROWS)
    named = DATASETS.resolve(f"{kind}:{path}[features={path}]")
    assert named.names == (f"{kind}:{path}", f"{kind}:x.csv")
    assert named.full.startswith(f"{kind}:{path}[separator=auto")
    assert f"features={path}" in named.full
    assert (named.record.path, named.record.features) == (str(path), str(path))
    assert named.argument == str(path) and named.entry == f"{kind}:"


def test_whatever_says_which_of_its_settings_are_paths_is_known_by_content(tmp_path):
    texts = [
        f"filed:{written(tmp_path / name, 'data')}[labels={written(tmp_path / name, 'labels', 'y.csv')}]"
        for name in "ab"
    ]
    (identity,) = {THINGS.resolve(text).identity for text in texts}
    assert identity.count("sha256-") == 2 and identity.endswith(",size=5]")


def test_a_file_that_vanishes_cannot_be_read_and_ctrl_c_while_importing_one_is_no_error_of_the_file(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*gone.py: No such file or directory"):
        digest_of(tmp_path / "gone.py")
    path = tmp_path / "stopped.py"
    path.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        SOLVERS.make(f"{path}:Mine")


def test_an_edit_of_equal_length_in_the_same_second_is_noticed_and_no_bytecode_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "edited.py"
    for number in (1, 2):
        file.write_text(f"class Mine:\n    number = {number}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000 + number / 4))  # bytecode is of a second and a length
        assert class_from_file(f"{file}:Mine", "solver").number == number
    assert list(tmp_path.iterdir()) == [file]
