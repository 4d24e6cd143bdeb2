"""Folders of results and archives from somebody who means harm: no verb hangs, fills the memory or runs what is there.

Each verb says in a few lines what it cannot read, and shows all else. `make trust` tries every verb on everything, and
otherwise half of the folders have one verb, mostly one that is quick.
"""

import io
import json
import os
import shutil
import stat
import zipfile
import zlib
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from helpers import around, made_up, silent, store_in, tiny_toml
from wrong_input.limited import Limited

from rankbench import experiments
from rankbench.api.session import Session
from rankbench.core.regular import opened
from rankbench.records.archive import METADATA, sha256_of
from rankbench.records.codec import with_digest
from rankbench.records.store import ResultsFolder
from rankbench.report import manifest
from rankbench.report.crate import files_of
from rankbench.report.study import study

pytestmark = pytest.mark.slow

MOST = 500  # MB
VERBS = {
    "table": ("table", "tiny", "--out", "{out}"),
    "report": ("report", "--out", "{out}", "--to", "{here}/report"),
    "compare": ("compare", "tiny", "--out", "{out}"),
    "archive": ("archive", "tiny", "--out", "{out}", "--to", "{here}/a.zip"),
    "merge": ("merge", "{out}", "--out", "{here}/all"),
    "status": ("status", "--out", "{out}"),
    "verify": ("verify", "tiny", "--out", "{out}", "--all", "-q"),
    "run": ("run", "{toml}", "--out", "{out}", "-q", "--no-report"),
}
QUICK = ("table", "compare", "archive", "merge", "status")
ONE_EACH = (*QUICK, "report", *QUICK, "verify", *QUICK, "run")
TURNS = [word for verb in ONE_EACH for word in (verb, "none at all")]  # every other folder
ON_ARCHIVES = {
    "table": ("table", "{file}"),
    "report": ("report", "--out", "{file}", "--to", "{here}/report"),
    "compare": ("compare", "{file}", "{file}"),
    "merge": ("merge", "{file}", "--out", "{here}/all"),
    "status": ("status", "--out", "{file}"),
    "verify": ("verify", "{file}", "-q"),
    "model": ("model", "tiny", "--best", "--out", "{file}", "--to", "{here}/m.npz"),
}


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """The process that runs commands with limits."""
    process = Limited(tmp_path_factory.mktemp("limited"))
    yield process
    process.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with an experiment and two results, as a run leaves them."""
    folder = tmp_path_factory.mktemp("whole")
    session = Session(ResultsFolder(folder / "results", silent))
    run = session.prepared(experiments.load(tiny_toml(folder, repetitions="1")))
    run.open()
    for cell in run.plan.cells:
        run.keep(made_up(cell, 0.5), around(cell, 0.5))
    session.execute(run)
    return folder


@pytest.fixture
def out(whole, tmp_path):
    """A copy of its results to spoil."""
    return shutil.copytree(whole / "results", tmp_path / "results")


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def holes(path):
    with path.open("wb") as file:
        file.truncate(20 * 10**9)


def link(target):
    return lambda path: path.symlink_to(target)


def renewed(change):
    """The same change of a JSON file, whose digest is made anew, so that it is read."""

    def changed(path, content):
        table = json.loads(content)
        change(table)
        table.pop("sha256", None)
        path.write_text(with_digest(json.dumps(table)))

    return changed


def put(name, text):
    """A change of a JSON file with a digest made anew: this text as the value of a field of a result."""

    def changed(path, content):
        table = json.loads(content)
        table.pop("sha256")
        table[name] = "the text"
        path.write_text(with_digest(json.dumps(table).replace('"the text"', text)))

    return changed


def array(name, values):
    return lambda path: np.savez_compressed(path, **{name: values})


def bomb(path):
    """An npz file of zeros that has 3 MB and unpacks to 3 GB."""
    head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (400000000,), }".ljust(117)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(head + b"\n") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(100_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += 32 * block + packer.flush()
    about = zipfile.ZipInfo("ndcg@5.npy")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(about, packed)
    content = path.read_bytes()  # the sizes and the method as if it were packed by `zipfile`
    size = (len(packed)).to_bytes(4, "little")
    content = content.replace(size + size, size + (3_200_000_128).to_bytes(4, "little"))
    content = content.replace(b"PK\x03\x04\x14\x00\x00\x00\x00\x00", b"PK\x03\x04\x14\x00\x00\x00\x08\x00")
    path.write_bytes(content.replace(b"\x14\x03\x14\x00\x00\x00\x00\x00", b"\x14\x03\x14\x00\x00\x00\x08\x00"))


def executed(path):
    """Values for users that are an object, which would write a file when it is unpickled."""
    np.savez(path, **{"ndcg@5": np.array([Trap(str(path.with_name("executed")))], dtype=object)})


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


SPECIAL = {
    "a pipe": os.mkfifo,
    "an endless device": link("/dev/zero"),
    "a device of nothing": link("/dev/null"),
    "a terminal": link("/dev/tty"),
    "a file of holes": holes,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nowhere": link("/nowhere/at/all"),
    "a link to the folder": link("."),
}
ARRAYS = {
    "packed zeros": bomb,
    "an object": executed,
    "a name that climbs": array("../../../ndcg@5", np.zeros(3)),
    "texts": array("ndcg@5", np.array(["a", "b"])),
    "complex numbers": array("ndcg@5", np.zeros(20, complex)),
    "a matrix": array("ndcg@5", np.zeros((20, 20))),
    "no numbers at all": array("ndcg@5", np.zeros(0)),
    "a hundred thousand users": array("ndcg@5", np.zeros(100_000)),
    "infinite values": array("ndcg@5", np.full(20, np.inf)),
}
BYTES = {
    "cut": lambda content: content[: len(content) // 2],
    "no JSON": b"result",
    "a text": b'"x"',
    "utf-16": lambda content: content.decode().encode("utf-16"),
    "binary": bytes(range(256)),
    "too deep": b"[" * 200_000,
}
CHANGES = {
    "a key that is a list": lambda table: table.update(key=[]),
    "a newer format": lambda table: table.update(format=99),
    "an unknown status": lambda table: table.update(status="good"),
    "a point without values": lambda table: table["curve"][0].pop("values"),
}
IN_PLAN = {
    "a seed that is a text": lambda table: table.update(seed="x"),
    "an unknown key": lambda table: table.update(more=1),
}
FIELDS = (
    "format", "key", "status", "reason", "curve", "counted", "unscored", "prepare", "imported", "trace", "stopped",
    "functions", "split", "model", "values", "peaks", "cell", "wall", "peak_mb", "contended", "machine", "finished",
    "load", "start",
)  # fmt: skip
TEXTS = (
    "NaN", "1e999", "-1", "9" * 4000, '"x"', "{}", "[" * 5000 + "]" * 5000, '"\\ud800"', "null", '"Infinity"',
    "[[]]", f'"{100_000 * "a"}"',
)  # fmt: skip


def cases():
    """Each spoilt file: its name, the kind of file, and how it is spoilt."""
    for kind in ("cells/sgd-*.json", "plans/*.json", "cells/sgd-*.npz", "manifests/*"):
        for name, change in SPECIAL.items():
            yield f"{kind}: {name}", kind, lambda path, content, change=change: change(path)
        for name, change in BYTES.items():
            if name == "utf-16" and kind.endswith(".npz"):
                continue  # it is no text to begin with
            yield f"{kind}: {name}", kind, lambda path, content, change=change: written(path, content, change)
    for name, change in ARRAYS.items():
        yield f"values: {name}", "cells/sgd-*.npz", lambda path, content, change=change: change(path)
    for name, change in CHANGES.items():
        yield f"result: {name}", "cells/sgd-*.json", renewed(change)
    for name, change in IN_PLAN.items():
        yield f"plan: {name}", "plans/*.json", renewed(change)
    for name, text in zip(FIELDS, cycle(TEXTS), strict=False):
        yield f"field: {name} {text[:12]}", "cells/sgd-*.json", put(name, text)


def written(path, content, change):
    path.write_bytes(change if isinstance(change, bytes) else change(content))


CASES = list(cases())
PAIRS = [
    pytest.param(kind, spoil, words, verb, id=f"{verb} {name}",
                 marks=() if turn == verb else pytest.mark.trust)
    for turn, (name, kind, spoil) in zip(cycle(TURNS), CASES, strict=False)
    for verb, words in VERBS.items()
]  # fmt: skip


def filled(words, **places):
    return [word.format(**places) for word in words]


def check(found, folder):
    """No traceback, a few lines, little memory, and nothing was run."""
    assert found.code in (0, 1, 2), (found.code, found.told[-2000:])
    assert "Traceback" not in found.told + found.shown
    assert found.told.count("\n") <= 10 and max(map(len, found.told.splitlines()), default=0) < 2000
    assert found.megabytes < MOST
    assert not list(folder.rglob("executed"))


def test_there_are_many_cases():
    assert len(CASES) >= 95 and len({name for name, *_ in CASES}) == len(CASES)


@pytest.mark.parametrize(("kind", "spoil", "words", "verb"), PAIRS)
def test_a_spoilt_file_harms_nothing(whole, out, tmp_path, limited, kind, spoil, words, verb):
    (path,) = (out / "tiny").glob(kind)
    content = path.read_bytes()
    remove(path)
    spoil(path, content)
    odd = path.exists() and (not path.is_file() or path.stat().st_size > 10**9)
    found = limited.said(*filled(words, out=out, here=tmp_path, toml=whole / "tiny.toml"))
    check(found, tmp_path)
    if verb in ("table", "compare") and "/sgd" in kind:
        assert found.code != 0 or "global" in found.shown
        assert path.name in found.told or not odd
    if verb == "table" and kind == "cells/sgd-*.json":
        assert found.code == 0 and found.told.count("\n") <= 1
    if verb == "verify" and kind != "manifests/*":
        assert found.code != 0


def test_a_thousand_damaged_files_are_ten_lines(out, tmp_path, limited):
    for number in range(1000):
        (out / "tiny" / "cells" / f"sgd-{number:016x}.json").write_bytes(b"{" if number % 2 else b"\xff")
    for verb in ("table", "status", "merge", "archive", "verify", "report"):
        found = limited.said(*filled(VERBS[verb], out=out, here=tmp_path), limit=60)
        check(found, tmp_path)


@pytest.fixture(scope="module")
def parts(whole):
    """The files of an archive of these results, by their names in it."""
    store = store_in(whole / "results", "tiny")
    (plan,) = store.plans()
    files = files_of(store, plan, study(ResultsFolder(whole / "results", silent), "tiny"))
    return {name: part if isinstance(part, bytes) else part.read_bytes() for name, part in files.items()}


def entry(name, mode=0o100644):
    about = zipfile.ZipInfo("x" if "\x00" in name else name)
    about.filename = about.orig_filename = name
    about.external_attr = mode << 16
    return about


def with_entry(name, content=b"x", mode=0o100644, described=True):
    """An archive with one more entry, which its metadata describe."""

    def made(path, parts):
        files = dict(parts)
        if described:
            about = json.loads(files[METADATA])
            about["@graph"].append({"@id": name, "sha256": sha256_of(content)})
            files[METADATA] = json.dumps(about).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            for other, part in files.items():
                file.writestr(other, part)
            file.writestr(entry(name, mode), content, zipfile.ZIP_DEFLATED)

    return made


def with_part(name, content):
    """An archive in which one file has this content, and its metadata say so."""

    def made(path, parts):
        files = dict(parts)
        own = next(other for other in files if name in other)
        files[own] = content(files[own]) if callable(content) else content
        if own != METADATA:
            about = json.loads(files[METADATA])
            for node in about["@graph"]:
                if node["@id"].endswith(own):
                    node["sha256"] = sha256_of(files[own])
            files[METADATA] = json.dumps(about).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            for other, part in files.items():
                file.writestr(other, part)

    return made


def whole_of(change):
    """An honest archive whose bytes are changed."""

    def made(path, parts):
        with_entry("more.txt")(path, parts)
        path.write_bytes(change(path.read_bytes()))

    return made


def repacked(content):
    """An npz file that is compressed."""
    target = io.BytesIO()
    np.savez_compressed(target, **{"ndcg@5": np.zeros(10**7)})
    return target.getvalue()


ARCHIVES = {
    "a path that climbs": with_entry("../climbed"),
    "a path that climbs from within": with_entry("results/../../climbed"),
    "an absolute path": with_entry("/tmp/absolute"),
    "a drive": with_entry("C:\\absolute"),
    "a link": with_entry("results/link", b"/etc/passwd", stat.S_IFLNK | 0o777),
    "a device": with_entry("results/device", mode=stat.S_IFCHR | 0o666),
    "a pipe": with_entry("results/pipe", mode=stat.S_IFIFO | 0o666),
    "a name that is there twice": with_entry("table.csv"),
    "a name in other letters": with_entry("TABLE.CSV"),
    "a name of two lines": with_entry("one\ntwo"),
    "a name with a control": with_entry("\x1b[31mred"),
    "an empty name": with_entry(""),
    "a very long name": with_entry("a/" * 300 + "a"),
    "a name that stands for a device": with_entry("results/nul.json"),
    "a file that nobody describes": with_entry("more.txt", described=False),
    "a bomb": with_entry("more.txt", bytes(300_000_000)),
    "values that are packed": with_part(".npz", repacked),
    "metadata that are no JSON": with_part(METADATA, b"{"),
    "metadata that are nested deeply": with_part(METADATA, b'{"@graph": ' + b"[" * 100_000),
    "metadata of another encoding": with_part(METADATA, "{}".encode("utf-16")),
    "metadata that are a list": with_part(METADATA, b"[]"),
    "metadata of numbers": with_part(METADATA, b'{"@graph": [1, 2, 3]}'),
    "a plan that is no JSON": with_part("/plans/", b"{"),
    "a plan that is a list": with_part("/plans/", b"[]"),
    "a class of the system": with_part("/plans/", lambda text: text.replace(b"rankbench.solvers.sgd:SGD",
                                                                                      b"os:system")),
    "a result that is nested deeply": with_part("/cells/", b"[" * 100_000),
    "a wrong size": whole_of(lambda content: content.replace(len(b"x").to_bytes(4, "little"), b"\xff\xff\xff\x7f")),
    "half of it": whole_of(lambda content: content[: len(content) // 2]),
    "its end alone": whole_of(lambda content: content[len(content) // 2 :]),
    "noise amid": whole_of(lambda content: content[:500] + os.urandom(500) + content[1000:]),
    "encrypted": whole_of(lambda content: content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00",
                                                          b"PK\x01\x02\x14\x03\x14\x00\x01\x00")),
    "nothing": whole_of(lambda content: b""),
    "no archive": whole_of(lambda content: b"results\n" * 1000),
    "an endless device": lambda path, parts: path.symlink_to("/dev/zero"),
    "a pipe in its place": lambda path, parts: os.mkfifo(path),
    "holes": lambda path, parts: holes(path),
    "a folder in its place": lambda path, parts: path.mkdir(),
    "a link to itself": lambda path, parts: path.symlink_to(path.name),
}  # fmt: skip


ARCHIVE_PAIRS = [
    pytest.param(make, words, id=f"{verb} {name}",
                 marks=() if number % 2 == 0 and number // 2 % len(ON_ARCHIVES) == place else pytest.mark.trust)
    for number, (name, make) in enumerate(ARCHIVES.items())
    for place, (verb, words) in enumerate(ON_ARCHIVES.items())
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), ARCHIVE_PAIRS)
def test_a_hostile_archive_harms_nothing(parts, tmp_path, limited, make, words):
    make(tmp_path / "a.zip", parts)
    found = limited.said(*filled(words, file=tmp_path / "a.zip", here=tmp_path))
    check(found, tmp_path)
    assert found.code != 0 or "status" in words
    assert {path.name for path in tmp_path.iterdir()} <= {"a.zip", "all", "report"} and not Path(
        "/tmp/absolute"
    ).exists()


def test_unreadable_files_are_named(out, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    path = next((out / "tiny" / "cells").glob("sgd-*.json"))
    path.chmod(0)
    with pytest.raises(PermissionError):
        opened(path)
    told = []
    assert study(ResultsFolder(out, told.append, untouched=True), "tiny") and path.name in told[0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("words", [("recommend", "{file}"), ("check", "{file}"), ("on", "{file}"),
                                   ("data", "import", "ml-1m", "{file}"), ("table", "{file}"), ("run", "{file}"),
                                   ("run", "{file}.toml")])  # fmt: skip
@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_file_is_refused_by_every_verb(tmp_path, limited, special, words):
    for name in ("file", "file.toml"):
        special(tmp_path / name)
    found = limited.said(*filled(words, file=tmp_path / "file"))
    check(found, tmp_path)
    assert found.code in (1, 2) and found.told.count("\n") + found.shown.count("\n") <= 3


def test_the_manifest_of_the_folder_is_honest(whole):
    store = store_in(whole / "results", "tiny")
    (plan,) = store.plans()
    assert list(manifest.findings(store, plan)) == []
