"""Forgeries are named: one thing at a time is changed in results or in an archive, with all digests made anew."""

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import forging
import numpy as np
import pytest
from helpers import SOLVER_HEAD, silent, tiny

import rankbench
from rankbench import experiments
from rankbench.api.session import Session
from rankbench.arrays.npz import fingerprint_of, read_npz
from rankbench.core.errors import UserError
from rankbench.execution.run import Conditions
from rankbench.metrics import mean
from rankbench.records.archive import METADATA, opened, sha256_of, write
from rankbench.records.codec import Unreadable, encode, with_digest
from rankbench.records.differences import NOT_REPEATED
from rankbench.records.store import ResultsFolder, beside_name, values_of
from rankbench.report import manifest
from rankbench.report.study import study
from rankbench.verification.cells import sampled
from rankbench.verification.verify import NOT_VERIFIED, Extent, StudyFiles, Verification

pytestmark = pytest.mark.slow

EXPERIMENT = """
title = "A forger's target"
paper = "none"
about = "Solvers that end well, that fail, and that are tuned."
data = ["low-rank[users=20,items=30,per_user=20]"]
splits = ["n-per-user[n=8,least=5]"]
solvers = ["global[lam=10]", "altsvm[rank=2]", "{folder}/mine.py:Mine"]
metrics = ["pairwise-error", "ndcg@5"]
objective = true
repetitions = 1
budget = {{steps = 3}}

[tune]
trials = 2
metric = "ndcg@5"
validation = "entries[test=0.3]"

[tune.space.global]

[tune.space."{folder}/mine.py:Mine"]

[tune.space.altsvm]
lam = {{ low = 1, high = 100, scale = "log" }}
"""
UNSEEN = {  # what no other run repeats: fields of results, and when a plan was last run
    *(f"cells:{name}" for name in NOT_REPEATED), "cells:curve.seconds", "plans:made",
}  # fmt: skip


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder with one run: trials, cells that ended well, and one that failed."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "mine.py").write_text(
        SOLVER_HEAD + "        raise ValueError('this solver always fails')\n        yield\n"
    )
    (folder / "target.toml").write_text(EXPERIMENT.format(folder=folder))
    session = Session(ResultsFolder(folder / "out", silent))
    session.run(experiments.load(str(folder / "target.toml")))
    return folder / "out"


class NoPlan(Exception):
    """The plan of a folder cannot be read, which every verb says."""


def verified(out: Path, archive: bool = False) -> Verification:
    """What verifying everything in a folder says."""
    results = ResultsFolder(out, silent)
    (name,) = results.names()
    found = study(results, name)
    if found is None:
        raise NoPlan
    session = Session(results, conditions=Conditions(jobs=2))
    return session.verify(StudyFiles.of(found, archive), Extent())


def verified_archive(path: Path) -> Verification:
    """What verifying everything in an archive says."""
    with opened(path) as folder:
        return verified(folder, archive=True)


def is_unseen(kind: forging.Kind) -> bool:
    """Whether a kind of change is to what no other run repeats."""
    fields = kind.name.rpartition(":")[0]
    return any(fields == known or fields.startswith(f"{known}.") for known in UNSEEN)


def test_nothing_is_wrong_with_what_is_honest(out, tmp_path):
    found = verified(out)
    assert found.good, list(found.lines)
    assert found.count("same") == len(found.checks) == found.of == 5
    assert {check.cell.is_trial for check in found.checks} == {True, False}
    whole = verified_archive(forging.archived(out, tmp_path / "honest.zip"))
    assert whole.good and whole.checks == found.checks


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.trust) for part in range(1, 12))])
def test_every_kind_of_change_to_a_record_is_named(out, tmp_path, part):
    known = [kind for kind in forging.kinds(out) if not is_unseen(kind)]
    unnoticed = [
        kind.name for kind in known[part::12] if goes_unnoticed(forging.forged(out, kind, tmp_path / kind.name))
    ]
    assert unnoticed == []
    assert len(known) >= 150


def test_what_no_other_run_repeats_is_said_to_be_unverified(out):
    assert any(line == f"not verified: {NOT_VERIFIED}" for line in verified(out).lines)


def goes_unnoticed(out: Path) -> bool:
    """Whether a folder that was forged is taken for an honest one, once its manifest is that of the forged files."""
    forging.renew_manifests(out)
    try:
        return verified(out).good
    except (NoPlan, UserError):
        return False


def known(arrays):
    """Two users who have different values."""
    users = np.flatnonzero(~np.isnan(arrays["ndcg@5"]))
    return users[np.argsort(arrays["ndcg@5"][users])][[0, -1]]


ON_ARRAYS = {
    "a user is moved a little": lambda arrays: arrays["ndcg@5"].__setitem__(known(arrays)[0], 0.123),
    "two users change places": lambda arrays: arrays["ndcg@5"].__setitem__(
        known(arrays), arrays["ndcg@5"][known(arrays)[::-1]]
    ),
    "a metric is dropped": lambda arrays: arrays.pop("ndcg@5"),
    "a metric is renamed": lambda arrays: arrays.__setitem__("ndcg@6", arrays.pop("ndcg@5")),
    "a metric is added": lambda arrays: arrays.__setitem__("ndcg@6", arrays["ndcg@5"]),
    "all are gone": lambda arrays: arrays.clear(),
}


@pytest.mark.parametrize("change", ON_ARRAYS.values(), ids=ON_ARRAYS)
def test_changed_values_of_users_are_named(out, tmp_path, change):
    target = tmp_path / "forged"
    shutil.copytree(out, target)
    store = ResultsFolder(target, silent).store("target")
    path = next(path for path in store.measurements() if "ndcg@5" in read_npz(path.with_suffix(".npz")))
    arrays, result = read_npz(path.with_suffix(".npz")), store.read(path)
    change(arrays)
    path.with_suffix(".npz").unlink()
    store.save(replace(result, values=fingerprint_of(arrays)), arrays)
    assert goes_unnoticed(target) is False


def good_ones(store):
    """The results that ended well and are no trials."""
    return [one for one in map(store.read, store.measurements()) if one.status == "ok" and not one.cell.is_trial]


ON_RESULTS = {
    "a point is added": lambda one: {"curve": (*one.curve, replace(one.curve[-1], step=4, values=(0.0001, 0.9999)))},
    "the curve is cut to its start": lambda one: {"curve": one.curve[:1]},
    "the users are a thousand times as many": lambda one: {
        "counted": tuple(replace(count, users=1000 * count.users) for count in one.counted)
    },
    "the objectives are made up": lambda one: {
        "curve": tuple(replace(point, objective=1.0 / (1 + point.step)) for point in one.curve)
    },
    "pairs without a score are made up": lambda one: {"unscored": 0.25},
    "the digest of the split is taken out": lambda one: {"split": ""},
    "the digest of the model is taken out": lambda one: {"model": ""},
    "the digest of the values is taken out": lambda one: {"values": ""},
    "a good end is hidden": lambda one: {
        "status": "failed",
        "reason": "boom",
        "curve": (),
        "counted": (),
        "values": "",
    },
    "a good end is called divergence": lambda one: {"status": "diverged", "reason": "its objective is nan"},
    "a good end is called a timeout": lambda one: {"status": "timeout", "reason": "600 s", "curve": (), "counted": ()},
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("change", ON_RESULTS.values(), ids=ON_RESULTS)
def test_changed_results_are_named_in_archives_too(out, tmp_path, change):
    """The same change is made in all cells that ended well, so that they do not give each other away."""
    target = tmp_path / "forged"
    shutil.copytree(out, target)
    store = ResultsFolder(target, silent).store("target")
    good = good_ones(store)
    assert len(good) == 2
    for result in good:
        changes = change(result)
        arrays = values_of(store.cells, result.cell) if changes.get("curve", result.curve) else {}
        store.path(result.cell).with_suffix(".npz").unlink()
        store.save(replace(result, **changes), arrays)
    assert goes_unnoticed(target) is False
    if changes.get("counted") in (None, ()):  # else no archive can be made of it
        assert not verified_archive(forging.archived(target, tmp_path / "forged.zip")).good


def test_a_dropped_result_and_two_swapped_ones_are_named(out, tmp_path):
    for name in ("dropped", "swapped"):
        shutil.copytree(out, tmp_path / name)
    store = ResultsFolder(tmp_path / "dropped", silent).store("target")
    store.path(good_ones(store)[0].cell).unlink()
    forging.renew_manifests(tmp_path / "dropped")
    assert any("there is none of" in line for line in verified(tmp_path / "dropped").lines)
    one, other = [path for path in (tmp_path / "swapped" / "target" / "cells").glob("altsvm-*.json")][:2]
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    assert goes_unnoticed(tmp_path / "swapped") is False


def with_one_beside(out, target, **changes):
    """A copy of a folder in which another machine's measurement lies beside a result that ended well, so changed."""
    shutil.copytree(out, target)
    store = ResultsFolder(target, silent).store("target")
    result = good_ones(store)[0]
    beside = replace(result, machine=replace(result.machine, cpu="another", cores=99), wall=1.0)
    text = json.loads(store.path(result.cell).read_text()) | json.loads(encode({**vars(beside), **changes}))
    text.pop("sha256")
    (store.cells / beside_name(beside)).write_text(with_digest(json.dumps(text)))
    forging.renew_manifests(target)
    return result, [line for line in verified(target).lines if line.startswith("differs")]


def test_a_measurement_beside_a_result_has_the_numbers_of_the_result(out, tmp_path):
    result, honest = with_one_beside(out, tmp_path / "honest")
    assert honest == []
    last = result.curve[-1]
    changed = (*result.curve[:-1], replace(last, values=(last.values[0] / 2, *last.values[1:])))
    for name, changes, said in (
        ("curve", {"curve": changed}, "it has another pairwise-error than the cell's result: processor AMD"),
        ("model", {"model": "0" * 64, "machine": result.machine}, "it has another model than the cell's result: on"),
        ("end", {"status": "timeout"}, "it ended as timeout, and has values for users"),
    ):
        _, lines = with_one_beside(out, tmp_path / name, **changes)
        assert len(lines) == 1 and said.partition(" AMD")[0] in lines[0]


@pytest.mark.parametrize(("reason", "said"), [
    ("needs item features", "not verified: plan: it says "),
    ("is worse than random", "differs: plan: its experiment does not skip here: "),
], ids=["another reason", "another part"])  # fmt: skip
def test_what_a_plan_says_was_skipped_is_what_its_experiment_skips(tmp_path, reason, said):
    experiment = tiny(solvers=("global", "imc"), repetitions=1)  # of which one needs features
    session = Session(ResultsFolder(tmp_path, silent))
    session.run(experiment)
    assert not any("plan" in line for line in verified(tmp_path).lines)
    store = ResultsFolder(tmp_path, silent).store("tiny")
    (plan,) = store.plans()
    (skip,) = plan.skips
    changes = (
        {"reason": f"{skip.solver.written} {reason}"} if "features" in reason else {"reason": reason, "solver": None}
    )
    store.replace_plan(replace(plan, skips=(replace(skip, **changes),)))
    forging.renew_manifests(tmp_path)
    found = verified(tmp_path)
    assert any(line.startswith(said) and reason in line for line in found.lines), list(found.lines)


@pytest.mark.parametrize("machine", [{"kernels": "0" * 64}, {"cpu": "another"}, {}], ids=["kernels", "cpu", "same"])
def test_another_basis_does_not_excuse_gross_changes(out, tmp_path, machine):
    """Values of users that were halved, with the curve and all digests to match, as if made on another machine."""
    shutil.copytree(out, tmp_path / "forged")
    store = ResultsFolder(tmp_path / "forged", silent).store("target")
    for result in good_ones(store):
        arrays = values_of(store.cells, result.cell) | {}
        arrays["ndcg@5"] = arrays["ndcg@5"] / 2
        last = result.curve[-1]
        values = tuple(mean(arrays[measure.label]) for measure in result.cell.measures)
        store.save(
            replace(result, machine=replace(result.machine, **machine), values=fingerprint_of(arrays),
                    curve=(*result.curve[:-1], replace(last, values=values))),
            arrays,
        )  # fmt: skip
    forging.renew_manifests(tmp_path / "forged")
    found = verified(tmp_path / "forged")
    assert sum("ndcg@5 of users" in check.differing for check in found.checks if check.verdict == "differs") == 2


def test_a_file_without_its_digest_is_named(out, tmp_path):
    for name, folder in (("result", "cells"), ("plan", "plans")):
        shutil.copytree(out, tmp_path / name)
        path = next((tmp_path / name / "target" / folder).glob("*.json"))
        content = json.loads(path.read_text())
        del content["sha256"]
        path.write_text(json.dumps(content))
        forging.renew_manifests(tmp_path / name)
        assert any(line.startswith("differs: digests: ") for line in verified(tmp_path / name).lines)


@pytest.mark.parametrize("changes", [{"finished": "2020-01-01T00:00:00+00:00"}, {"wall": 1e-3}, {"machine": {}}])
def test_what_no_other_run_repeats_is_named_by_the_manifest(out, tmp_path, changes):
    """A date, a time or versions: only the manifest knows them, and a signature knows the manifest."""
    shutil.copytree(out, tmp_path / "forged")
    store = ResultsFolder(tmp_path / "forged", silent).store("target")
    result = good_ones(store)[0]
    own = {"machine": replace(result.machine, packages=(("rankbench", "9.9"),))} if "machine" in changes else changes
    store.save(replace(result, **own), values_of(store.cells, result.cell))
    (plan,) = store.plans()
    (finding,) = manifest.findings(store, plan)
    assert finding.bad and store.path(result.cell).name in finding.seen
    assert goes_unnoticed(tmp_path / "forged") is True  # of the forger's own manifest nobody can know


def test_a_file_that_was_changed_by_hand_is_refused(out, tmp_path):
    shutil.copytree(out, tmp_path / "edited")
    path = next((tmp_path / "edited" / "target" / "cells").glob("global-*.json"))
    path.write_text(re.sub(r'"wall": \d', '"wall": 9', path.read_text()))
    told = []
    store = ResultsFolder(tmp_path / "edited", told.append).store("target")
    with pytest.raises(Unreadable, match="its SHA-256 is another one"):
        store.read(path)
    assert not list(store.summaries())[4:] and "changed after it was written" in told[0]


DERIVED = ("README.md", "experiment.json", "splits.json", "versions.json", "sources.json", "page.html", "table.csv")


@pytest.mark.trust
@pytest.mark.parametrize("name", [*DERIVED, "ro-crate-metadata.json"])
def test_a_changed_file_of_an_archive_is_named(out, tmp_path, name):
    files = unzipped(forging.archived(out, tmp_path / "honest.zip"))
    changed = files | {name: files[name].replace(b"forger", b"lender") + b" "}
    write(tmp_path / "forged.zip", changed if name not in DERIVED else forging.with_renewed_digests(changed))
    lines = list(verified_archive(tmp_path / "forged.zip").lines)
    assert any(line.startswith(f"differs: {name}") for line in lines)


def test_another_version_in_the_metadata_is_no_excuse(out, tmp_path):
    """Files that another rankbench made cannot be made again; but which it was, the results say."""
    files = unzipped(forging.archived(out, tmp_path / "honest.zip"))
    changed = files | {"table.csv": files["table.csv"] + b"1\n"}
    changed[METADATA] = files[METADATA].replace(rankbench.__version__.encode(), b"9.9.9")
    assert changed[METADATA] != files[METADATA]
    write(tmp_path / "forged.zip", forging.with_renewed_digests(changed))
    lines = list(verified_archive(tmp_path / "forged.zip").lines)
    assert {"table.csv", METADATA} <= {line.split(": ")[1] for line in lines if line.startswith("differs")}


NOT_VERIFIED_WORDS = {  # which word says that a field is not verified
    "prepare": "times", "wall": "times", "peaks": "memory", "peak_mb": "memory", "load": "load", "contended": "load",
    "finished": "dates", "machine": "machines", "imported": "imports", "trace": "tracebacks",
}  # fmt: skip


def test_every_field_that_is_not_verified_is_said_to_be_so():
    assert NOT_VERIFIED_WORDS.keys() == NOT_REPEATED
    assert all(word in NOT_VERIFIED for word in (*NOT_VERIFIED_WORDS.values(), "licence"))


def test_a_file_that_was_added_to_an_archive_is_named(out, tmp_path):
    files = unzipped(forging.archived(out, tmp_path / "honest.zip"))
    about = json.loads(files[METADATA])
    about["@graph"].append({"@id": "more.txt", "sha256": sha256_of(b"more"), "contentSize": "4"})
    write(tmp_path / "forged.zip", files | {"more.txt": b"more", METADATA: json.dumps(about).encode()})
    assert any(line.startswith("differs: more.txt") for line in verified_archive(tmp_path / "forged.zip").lines)


def unzipped(path: Path) -> dict[str, bytes]:
    """The files of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_sample_promises_what_it_finds():
    """Of 40 results, with as many changed as promised, 95 of 100 samples of 8 have one of these."""
    found = Verification("x", (None,) * 8, 40, 0, ())
    changed = set(range(found.noticed))
    hits = sum(bool(changed & set(sampled(range(40), 8, draw))) for draw in range(2000))
    assert hits / 2000 >= 0.94
    fewer = set(range(found.noticed - 1))
    assert sum(bool(fewer & set(sampled(range(40), 8, draw))) for draw in range(2000)) / 2000 < 0.96
