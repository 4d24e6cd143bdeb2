"""Results passed on: merge, archive and model on the command line, and archives in place of folders."""

import hashlib
import json
import shutil
import subprocess
import zipfile
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from helpers import (
    MACHINE,
    TINY,
    around,
    csv_rows,
    made_up,
    made_up_run,
    no_values,
    prepared,
    ran,
    rankbench,
    silent,
    store_in,
    tiny,
    tiny_toml,
    tuned,
    with_solver,
)
from rocrate.rocrate import ROCrate

from rankbench import fitted, models
from rankbench.cli.opening import _commit
from rankbench.core.errors import UserError
from rankbench.execution.retraining import by_key
from rankbench.experiments import Budget
from rankbench.planning.materials import Materials
from rankbench.records.cells import Selection
from rankbench.records.results import Counted
from rankbench.records.store import ResultsFolder, values_of
from rankbench.report.study import study

pytestmark = pytest.mark.slow

OTHER = replace(MACHINE, cpu="another processor", git="def4567890ab")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A folder with results of a real tiny run, and an archive of it."""
    folder = tmp_path_factory.mktemp("real")
    ran(folder / "results", TINY)
    with pytest.MonkeyPatch.context() as patch:
        code = rankbench(patch, "archive", "tiny", "--to", str(folder / "tiny.zip"), "--out", str(folder / "results"))
    assert code == 0
    return folder


@pytest.fixture
def cli(cli, monkeypatch, tmp_path):
    """The command line in an empty folder; its commands leave no temporary files."""
    place, temporary = tmp_path / "place", tmp_path / "temporary"
    place.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    yield cli
    assert not [path.name for path in temporary.iterdir() if not path.name.startswith("pymp-")]


# --- archive


@pytest.mark.trust
@pytest.mark.parametrize("options", [(), ("--csv",), ("--latex",)])
def test_the_table_of_an_archive_has_the_same_bytes_as_the_folders(cli, real, options):
    folders = cli("table", "tiny", "--out", real / "results", *options).out
    for words in (("tiny", "--out", real / "tiny.zip"), (real / "tiny.zip",)):
        said = cli("table", *words, *options)
        assert said.out == folders and said.err == f"{real / 'tiny.zip'}: 4 of 4 results there\n"


def test_the_same_run_gives_the_same_archive(cli, real):
    said = cli("archive", "tiny", "--to", "again.zip", "--out", real / "results").out
    assert said.startswith("again.zip: 4 of 4 results of tiny (quick profile, seed 0), ")
    with open("again.zip", "rb") as again:
        assert again.read() == (real / "tiny.zip").read_bytes()


def test_the_crate_is_one_by_the_specification(real, tmp_path):
    with zipfile.ZipFile(real / "tiny.zip") as archive:
        archive.extractall(tmp_path)
        names = set(archive.namelist()) - {"ro-crate-metadata.json"}
    crate = ROCrate(tmp_path)
    root = crate.root_dataset
    assert crate.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.1" and root["datePublished"]
    assert root["name"] == "tiny: A tiny experiment" and root["license"] and root["description"]
    files = {unquote(entity.id): entity for entity in crate.data_entities if entity.type == "File"}
    assert files.keys() == names
    for name, entity in files.items():
        content = (tmp_path / name).read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        assert int(entity["contentSize"]) == len(content)
        assert entity["encodingFormat"] and entity["description"]
    run = crate.get("#run")
    assert run.type == "CreateAction" and run["instrument"]["name"] == "rankbench"
    (data,) = run["object"]
    assert data["name"].startswith("low-rank[users=20,") and data["license"] == "none needed"


def test_what_an_archive_tells_without_rankbench(real):
    found = study(ResultsFolder(real / "results", silent), "tiny")
    with zipfile.ZipFile(real / "tiny.zip") as archive:
        names = ("splits", "versions", "experiment")
        splits, versions, settings = (json.loads(archive.read(f"{name}.json")) for name in names)
        page, table = archive.read("page.html").decode(), archive.read("table.csv").decode()
    hashes = {entry.cell.place.repetition: entry.cell.split_hash for entry in found.entries}
    assert {one["repetition"]: one["sha256"] for one in splits} == hashes and len(splits) == 2
    assert {one["data"] for one in splits} == {found.entries[0].cell.place.data.identity}
    assert versions[0]["fingerprint"] == found.results[0].machine.fingerprint
    assert settings["solvers"] == list(TINY.solvers) and settings["budget"]["steps"] == 3
    assert "A tiny experiment" in page and len(csv_rows(table)) == 4


def test_own_files_are_named_by_hash_and_stay_at_home(cli, tmp_path):
    solver = with_solver(tmp_path, "yield Step(ItemScores(np.arange(train.n_items, dtype=float)))")
    ran(tmp_path / "results", tiny(solvers=(solver,), repetitions=1))
    cli("archive", "tiny", "--out", tmp_path / "results", "--licence", "CC0")
    with zipfile.ZipFile("tiny.zip") as archive:
        (source,) = json.loads(archive.read("sources.json"))
        assert not [name for name in archive.namelist() if name.endswith(".py")]
        assert '"license": "CC0"' in archive.read("ro-crate-metadata.json").decode()
    digest = hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()[:16]
    assert source == {"name": "mine.py:Mine", "identity": f"sha256-{digest}.py:Mine"}
    cli("verify", "tiny.zip", "-q")
    (tmp_path / "mine.py").write_text("raise SystemExit")  # another file in its place is not run
    said = cli("verify", "tiny.zip", "-q", code=1).out
    assert "none with a result can be run again here" in said


def test_every_verb_takes_an_archive(cli, real):
    path = real / "tiny.zip"
    said = cli("verify", path, "--sample", 1, "-q").out
    assert said.endswith("\ntiny: 1 of 1 cells came out the same to the last byte\n")
    cli("verify", "tiny", "--out", path, "--sample", 1, "-q")
    assert "2 of 2" not in cli("status", path).out and "4 of 4 cells are stored" in cli("status", "--out", path).out
    said = cli("compare", path, path, "--fail-if-worse").out
    assert "equal within" in said
    cli("compare", path)
    cli("compare", path, real / "results")
    cli("report", path, "--to", "figures")
    said = cli("report", "--out", path, "--to", "shown").out
    assert "shown/index.html" in said
    copy = shutil.copy(path, "copy.zip")
    cli("report", "--out", copy)
    assert (real / "results").is_dir()
    with open("copy-report/tables/tiny.csv") as table:
        assert len(table.readlines()) == 5


def test_a_run_does_not_write_into_an_archive(cli, real, tmp_path):
    cli.refuses("run", tiny_toml(tmp_path), "--out", real / "tiny.zip", "-q")


@pytest.mark.parametrize("verb", ["table", "verify", "compare", "status", "report"])
def test_a_damaged_archive_is_one_line(cli, real, tmp_path, verb):
    path = tmp_path / "bad.zip"
    path.write_bytes((real / "tiny.zip").read_bytes()[:-500])
    assert "bad.zip is damaged" in cli.refuses(verb, path)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("archive", "tiny", "--out", "nowhere"), "no results under nowhere"),
        (("archive", "{real}/tiny.zip"), "is an archive already"),
        (("archive", "tiny", "--out", "{real}/results", "--to", "{real}/tiny.zip"), "exists already"),
        (("archive", "tiny", "--out", "{real}/results", "--to", "no/such/place.zip"), "cannot write no/such/place.zip"),
        (("archive", "tiny", "--out", "{real}/results", "--seed", "7"), "tiny has no such run"),
        (("merge", "{real}/results", "--out", "{real}/results"), "cannot be merged into itself"),
        (("merge", "nowhere", "--out", "all"), "nowhere holds no results"),
        (("merge", "{real}", "--out", "all"), "holds no results"),
        (("merge", "{real}/results", "--out", "{real}/tiny.zip"), "cannot write to {real}/tiny.zip"),
        (("model", "tiny", "--out", "{real}/results"), "'tiny' is no key"),
        (("model", "abc", "--out", "{real}/results"), "too short: give at least 6 digits"),
        (("model", "abcdef012", "--out", "{real}/results"), "no result in {real}/results has a key"),
        (("model", "tiny", "--best", "--metric", "ndgc@5", "--out", "{real}/results"), "did you mean 'ndcg@5'?"),
        (("model", "tiny", "--best", "-s", "sdg", "--out", "{real}/results"), "unknown solver of tiny 'sdg'"),
        (("model", "tiny", "--best", "-d", "ml", "--out", "{real}/results"), "unknown data of tiny 'ml'"),
        (("model", "abcdef012", "-s", "sgd", "--out", "{real}/results"), "give --best with them"),
        (("compare", "{real}/results", "nowhere"), "'nowhere' is no folder and no archive"),
        (("compare", "{real}/results", "0123456", "--out", "{real}/results"), "of a machine or commit '0123456'"),
        (("table", "tiny", "--machine", "0123456", "--out", "{real}/results"), "no results of a machine or commit"),
        (("compare", "{real}/results", "{real}/results", "-e", "other"), "no experiment in common"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_writes_nothing(cli, real, tmp_path, words, line):
    said = cli.refuses(*(word.format(real=real) for word in words))
    assert line.format(real=real) in said
    assert not list((tmp_path / "place").iterdir())


@pytest.mark.trust
def test_the_trials_of_a_tuned_experiment_are_in_its_archive(cli, tmp_path):
    ran(tmp_path / "r", tuned(repetitions=1))
    said = cli("archive", "tiny", "--out", tmp_path / "r").out
    assert said.startswith("tiny.zip: 8 of 8 results of tiny")
    for options in ((), ("--what", "trials"), ("--what", "trials", "--csv")):
        folders = cli("table", "tiny", *options, "--out", tmp_path / "r").out
        assert cli("table", "tiny.zip", *options).out == folders != ""


def test_an_experiment_of_the_users_own_file_is_archived(cli, tmp_path):
    toml = tiny_toml(tmp_path)
    cli("run", toml, "--out", tmp_path / "r", "-q", "--no-report")
    said = cli("archive", toml, "--out", tmp_path / "r", "--to", "own.zip").out
    assert said.startswith("own.zip: 4 of 4 results of tiny")
    assert cli("table", "own.zip", "--csv").out == cli("table", toml, "--csv", "--out", tmp_path / "r").out != ""


def test_a_run_without_a_result_has_no_archive(cli, tmp_path):
    prepared(tmp_path / "r", TINY).open()
    said = cli.refuses("archive", "tiny", "--out", tmp_path / "r")
    assert said == "rankbench: no cell of tiny has a result yet: rankbench run tiny\n"


def test_of_own_data_an_archive_tells_the_hash_and_nothing_else(cli, tmp_path):
    (tmp_path / "r.csv").write_text("".join(f"u{i},i{j},{(i * j) % 5}\n" for i in range(12) for j in range(20)))
    made_up_run(tmp_path / "r", tiny(data=(f"csv:{tmp_path / 'r.csv'}",)))
    cli("archive", "tiny", "--out", tmp_path / "r")
    with zipfile.ZipFile("tiny.zip") as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    (data,) = (node for node in graph if node["@id"] == "#data-1")
    assert data["description"] == "A data set of the author's own" and "license" not in data
    assert data["identifier"].startswith("csv:sha256-")


def test_an_unfinished_run_says_how_much_is_there(cli, tmp_path):
    made_up_run(tmp_path / "r")
    sorted((tmp_path / "r" / "tiny" / "cells").glob("*.json"))[0].unlink()
    assert "3 of 4 results" in cli("archive", "tiny", "--out", tmp_path / "r").out
    assert cli("table", "tiny.zip").err == "tiny.zip: 3 of 4 results there\n"


# --- merge


def test_two_machines_are_merged_and_shown(cli, tmp_path):
    made_up_run(tmp_path / "a", selection=Selection(repetitions=1))
    made_up_run(tmp_path / "b", machine=OTHER)
    said = cli("merge", tmp_path / "a", tmp_path / "b", "--out", "all", "--dry-run").out
    assert "4 results would be added, 2 measurements would be kept beside" in said and "dry run" in said
    cli("status", "--out", "all", code=2)  # nothing was written
    said = cli("merge", tmp_path / "a", tmp_path / "b", "--out", "all").out
    assert said.splitlines() == [
        "tiny: 4 results added, 2 measurements kept beside those of other machines or times, 0 there already",
        "all: 0 conflicts, 0 files left out",
    ]
    listed = cli("status", "--out", "all").out
    assert (
        f"{OTHER.cpu}, 2 cores, Python 3.12.0 (machine {OTHER.fingerprint}, commit def4567890ab): 2 results" in listed
    )
    table = cli("table", "tiny", "--out", "all").out
    note = next(line for line in table.splitlines() if line.startswith("Times are those of machine"))
    assert (
        MACHINE.fingerprint in note and f"2 more measurements of these cells, from machine {OTHER.fingerprint}" in note
    )
    rows = cli("table", "tiny", "--csv", "--out", "all").out
    assert {row["seconds"] for row in csv_rows(rows)} == {""}  # of two machines there is no mean


def test_results_that_give_way_to_better_ones_are_counted(cli, tmp_path):
    bad = {"status": "timeout", "reason": "10 s", "curve": (), "counted": ()}
    made_up_run(tmp_path / "a", arrays=no_values, **bad)
    made_up_run(tmp_path / "b")
    for more, added, are in ((("--dry-run",), "would be added", "would be "), ((), "added", "are ")):
        said = cli("merge", tmp_path / "b", "--out", tmp_path / "a", *more).out
        assert said.splitlines()[0] == (
            f"tiny: 4 results {added}, 4 of them in place of results that did not end well, which {are}kept beside, "
            "0 there already"
        )


def test_one_machines_times_can_be_shown(cli, tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER, wall=9.0, peak_mb=77.0)
    cli("merge", tmp_path / "a", tmp_path / "b", "--out", "all")
    for asked, memory in (
        (OTHER.fingerprint[:6], "77.0"),
        ("def4", "77.0"),
        (MACHINE.fingerprint, "50.0"),
        ("abc123", "50.0"),
    ):
        rows = cli("table", "tiny", "--csv", "--machine", asked, "--out", "all").out
        found = csv_rows(rows)
        assert {row["peak_mb"] for row in found} == {memory} and all(row["low"] for row in found)


def test_a_conflict_is_shown_and_the_exit_code_says_so(cli, tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", value=0.6)
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*.json") if "cells" in str(path)}
    said = cli("merge", tmp_path / "b", "--out", tmp_path / "a", code=1).out
    assert f"ndcg@5 is 0.5 in {tmp_path / 'a'}, 0.6 in {tmp_path / 'b'}" in said
    assert said.splitlines()[-1].endswith(": 4 conflicts, 0 files left out")
    assert {path: path.read_bytes() for path in before} == before
    (tmp_path / "b" / "tiny" / "cells" / "x-0.json").write_text("{")
    said = cli("merge", tmp_path / "b", "--out", "new", code=1).err
    assert "x-0.json cannot be read" in said and said.count("\n") == 1


def test_an_archive_is_merged_like_a_folder(cli, real):
    cli("merge", real / "tiny.zip", "--out", "all")
    said = cli("merge", real / "results", "--out", "all").out
    assert "0 results added, 4 there already" in said


# --- compare


def test_each_later_one_is_compared_with_the_first(cli, tmp_path):
    for name, value in (("a", 0.5), ("b", 0.6), ("c", 0.4)):
        made_up_run(tmp_path / name, value=value)
    words = [tmp_path / name for name in "abc"]
    rows = csv_rows(cli("compare", *words, "--csv").out)
    assert len(rows) == 2 * 2 * 2
    assert {row["first"].rpartition(" in ")[2] for row in rows} == {str(words[0])}
    found = {(row["second"].rpartition("/")[2], row["verdict"]) for row in rows if row["metric"] == "ndcg@5"}
    assert found == {("b", "better"), ("c", "worse")}
    cli("compare", *words, "--fail-if-worse", code=1)
    cli("compare", *words, "-e", "tiny")


def test_two_commits_in_one_folder_are_compared(cli, tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER, curve=made_up(prepared(tmp_path / "x", TINY).plan.cells[0], 0.5).curve)
    cli("merge", tmp_path / "a", tmp_path / "b", "--out", "all")
    said = cli("compare", "abc123", "def456", "--out", "all").out
    assert "equal within" in said and "in def456: 0.5000" in said
    said = cli.refuses("compare", "abc123", "0000000", "--out", "all")
    assert f"there are results of {MACHINE.fingerprint}, abc123, {OTHER.fingerprint}, def4567890ab" in said


def test_a_name_that_git_knows_becomes_its_commit(here):
    assert _commit("HEAD") == "HEAD" and _commit("--help") == "--help" and _commit("a\0b") == "a\0b"
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", *words], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert _commit("HEAD") == head[:12] and _commit(head[:7]) == head[:12]


def of_one_user(cell, value):
    return {measure.label: np.array([value]) for measure in cell.measures}


@pytest.mark.parametrize("arrays", [around, of_one_user])
@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.parametrize("other", [0.5, 0.6])
def test_one_repetition_one_user_and_identical_values_have_a_p_value(cli, tmp_path, arrays, repetitions, other):
    for name, value in (("a", 0.5), ("b", other)):
        counted = (Counted(20 if arrays is around else 1, 0),) * 2
        made_up_run(tmp_path / name, tiny(repetitions=repetitions), value, arrays=arrays, counted=counted)
    said = cli("compare", tmp_path / "a", tmp_path / "b", "--csv").out
    rows = csv_rows(said)
    assert len(rows) == 4 and "nan" not in said
    alike = other == 0.5
    assert all((row["p"] == "1.0") == (alike or arrays is of_one_user) for row in rows)
    assert {row["verdict"] for row in rows} <= ({"equal", "open"} if alike else {"better", "worse", "equal", "open"})


def test_sets_without_a_common_split_or_the_same_users_are_refused(cli, tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "seed", selection=Selection(seed=1))
    fewer = (Counted(19, 0), Counted(19, 0))
    made_up_run(tmp_path / "users", arrays=lambda cell, value: around(cell, value, users=19), counted=fewer)
    run = prepared(tmp_path / "rows", TINY)
    run.open()
    store = store_in(tmp_path / "rows")
    (plan,) = store.plans()
    moved = tuple(replace(cell, split_hash="0" * 64) for cell in plan.planned)
    store.write_plan(replace(plan, planned=moved))
    for cell in moved:
        run.keep(made_up(cell, 0.5), around(cell, 0.5))
    for name, line in (("seed", "no split in common"), ("users", "values of 19 and 20 users"),
                       ("rows", "no split of tiny in common")):  # fmt: skip
        said = cli.refuses("compare", tmp_path / "a", tmp_path / name)
        assert line in said or "values of 19 users" in said, said


# --- model


def test_a_model_is_made_again_bit_for_bit_with_ids(cli, real, tmp_path):
    found = study(ResultsFolder(real / "results", silent), "tiny")
    for number, entry in enumerate(found.entries):
        said = cli("model", entry.cell.key[: 8 + number], "--out", real / "results", "--to", f"{number}.npz").out
        assert f"SHA-256 {entry.result.model[:12]}, as stored" in said
        assert "numbered from 0" in said  # generated data has no ids
        assert type(models.load(f"{number}.npz")).__name__ in models.MODELS


def test_the_best_solver_of_an_experiment_or_archive(cli, real):
    found = study(ResultsFolder(real / "results", silent), "tiny")
    said = cli("model", "tiny", "--best", "--out", real / "results").out
    means = {}
    for entry in found.entries:
        means.setdefault(entry.cell.solver.written, []).append(entry.result.value("pairwise-error"))
    best = min(means, key=lambda name: np.mean(means[name]))  # a lower error is better
    assert f"· {best} · repetition 0" in said
    said = cli("model", real / "tiny.zip", "--best", "--metric", "ndcg@5", "-s", "global", "--to", "g.npz").out
    assert "global[lam=10] · repetition 0" in said


def test_several_data_sets_need_a_choice(cli, tmp_path):
    made_up_run(tmp_path / "a", tiny(data=(*TINY.data, "low-rank[users=24,items=30,per_user=20]")))
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a")
    assert "choose one with -d" in said and "users=24" in said
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a", "-d", TINY.data[0])
    assert "is not the stored one" in said  # the results are made up, and have no hash


def test_several_splits_need_a_choice(cli, tmp_path):
    made_up_run(tmp_path / "a", tiny(splits=(*TINY.splits, "entries[test=0.2]")))
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a")
    assert "entries[test=0.2], n-per-user[n=8,least=5]; choose one with --split" in said
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a", "--split", "entries")
    assert "is not the stored one" in said  # the results are made up, and have no hash
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a", "--split", "entires")
    assert "unknown split of tiny 'entires'" in said


def test_an_ambiguous_key_lists_the_cells(tmp_path):
    made_up_run(tmp_path / "a")
    results = ResultsFolder(tmp_path / "a", silent)
    with pytest.raises(UserError, match="is the start of 4 keys: ") as error:
        by_key(results, "")
    assert str(error.value).count("sgd[rank=2] · repetition") == 2
    keys = [entry.cell.key for entry in study(results, "tiny").entries]
    assert [by_key(results, key).key for key in keys] == keys
    with pytest.raises(UserError, match="no result in"):  # the file's name has its first 16 digits only
        by_key(results, keys[0][:16] + "x")


def changed(out, **changes):
    """Change the first stored result by hand; returns its key."""
    store = store_in(out)
    stored = study(ResultsFolder(out, silent), "tiny").entries[0].result
    store.save(replace(stored, **changes), values_of(store.cells, stored.cell))
    return stored.key


def test_another_model_is_not_written_unless_asked_for(cli, real, tmp_path):
    shutil.copytree(real / "results", tmp_path / "r")
    key = changed(tmp_path / "r", model="0" * 64)
    said = cli.refuses("model", key, "--out", tmp_path / "r", "--to", "m.npz")
    assert "it has other bytes on the same kernels, libraries and processor; nothing was written" in said
    assert not list((tmp_path / "place").iterdir())
    said = cli("model", key, "--out", tmp_path / "r", "--to", "m.npz", "--anyway").out
    assert "not the stored model" in said and models.load("m.npz")
    machine = study(ResultsFolder(tmp_path / "r", silent), "tiny").results[0].machine
    changed(tmp_path / "r", machine=replace(machine, cpu="an older one"))
    said = cli.refuses("model", key, "--out", tmp_path / "r")
    assert "it has other bytes: processor an older one then, " in said
    changed(tmp_path / "r", model="")
    assert "older than hashes of models" in cli.refuses("model", key, "--out", tmp_path / "r")
    changed(tmp_path / "r", status="timeout", reason="slow")
    assert "ended as timeout: only a cell that ended well has a model" in cli.refuses(
        "model", key, "--out", tmp_path / "r"
    )


def test_racing_threads_are_named(cli, tmp_path):
    ran(tmp_path / "r", tiny(solvers=("sgd[rank=2,schedule=hogwild]",), repetitions=1), Selection(threads=2))
    changed(tmp_path / "r", model="0" * 64)
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "r")
    assert "its threads race, so each training gives another model" in said


def test_a_budget_in_seconds_is_made_again_by_its_steps(cli, tmp_path):
    ran(tmp_path / "r", tiny(solvers=("sgd[rank=2]",), repetitions=1, budget=Budget(seconds=0.02)))
    said = cli("model", "tiny", "--best", "--out", tmp_path / "r").out
    assert "as stored" in said


def test_a_model_of_the_users_own_cannot_be_saved(cli, tmp_path):
    solver = with_solver(
        tmp_path,
        "class Plain:",
        "    def score(self, users, items): return items.astype(float)",
        "    def score_all(self, users, threads=1): return np.tile(np.arange(30.0), (len(users), 1))",
        "yield Step(Plain())",
    )
    ran(tmp_path / "r", tiny(solvers=(solver,), repetitions=1))
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "r")
    assert "makes a Plain, which no file of rankbench holds" in said


def test_a_users_own_ids_come_along(cli, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"u{user},{1000 + item},{rng.integers(1, 6)}" for user in range(12) for item in rng.permutation(25)[:20]]
    (tmp_path / "own.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    ran(tmp_path / "r", tiny(data=(f"csv:{tmp_path / 'own.csv'}",), repetitions=1))
    said = cli("model", "tiny", "--best", "--out", tmp_path / "r", "--to", "m.npz").out
    assert "with the data's own ids" in said
    model = fitted.load("m.npz")
    assert set(model.user_ids) == {f"u{user}" for user in range(12)} and "1004" in model.item_ids
    scores = model.score_ids(["u3", "u0"], ["1004", "1010"])
    numbers = [[list(model.user_ids).index(name) for name in ("u3", "u0")],
               [list(model.item_ids).index(name) for name in ("1004", "1010")]]  # fmt: skip
    assert scores.tobytes() == model.score(*map(np.array, numbers)).tobytes()
    cli("model", "tiny", "--best", "--out", tmp_path / "r", "--to", "n.npz")
    with open("m.npz", "rb") as one, open("n.npz", "rb") as other:
        assert one.read() == other.read()


def test_a_model_is_never_written_over_another_file_or_where_nothing_can_be(cli, real, tmp_path):
    entry = study(ResultsFolder(real / "results", silent), "tiny").entries[0]
    (tmp_path / "there.npz").write_text("mine")
    asked = ("model", entry.cell.key, "--out", real / "results", "--to")
    said = cli.refuses(*asked, tmp_path / "there.npz")
    assert "there.npz exists already: choose another file with --to, or remove it first" in said
    assert (tmp_path / "there.npz").read_text() == "mine"
    said = cli.refuses(*asked, tmp_path / "nowhere" / "model.npz")
    assert "model.npz: No such file or directory; choose another file with --to" in said


def test_a_model_whose_result_is_damaged_or_whose_data_has_changed_is_not_made(cli, real, tmp_path, monkeypatch):
    out = shutil.copytree(real / "results", tmp_path / "copy")
    entry = study(ResultsFolder(out, silent), "tiny").entries[0]
    split = Materials.split

    def other(self, place):
        return replace(split(self, place), seen=None, test=split(self, place).train)

    with monkeypatch.context() as patch:
        patch.setattr(Materials, "split", other)
        said = cli.refuses("model", entry.cell.key, "--out", out, "--to", "model.npz")
    assert "the data at hand gives another split of " in said
    path = ResultsFolder(out, silent).store("tiny").path(entry.cell)
    path.write_text("{")
    said = cli.refuses("model", entry.cell.key, "--out", out, "--to", "model.npz")
    assert f"{path} cannot be read: " in said


def test_the_best_of_cells_none_of_which_ended_well_is_none(cli, tmp_path):
    made_up_run(tmp_path / "a", arrays=no_values, status="failed", reason="broken", curve=())
    said = cli.refuses("model", "tiny", "--best", "--out", tmp_path / "a")
    assert "no cell that was asked for has ended well with a value of pairwise-error" in said
