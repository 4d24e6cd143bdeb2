"""Signatures of archives: made and checked by OpenSSH, and any change of the archive spoils them."""

import shutil
import subprocess
import zipfile

import pytest
from helpers import made_up_run, silent, store_in

from rankbench.core.errors import UserError
from rankbench.records.archive import METADATA, SIGNATURE, opened, write
from rankbench.records.store import ResultsFolder
from rankbench.report.crate import files_of
from rankbench.report.study import study
from rankbench.verification import signing
from rankbench.verification.signing import of_signature, signed

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with the keys of Ann and Bob, and files of allowed signers with either."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ann", "bob"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        key = (folder / f"{name}.pub").read_text()
        (folder / f"only_{name}").write_text(f'{name}@example.org namespaces="rankbench" {key}')
    return folder


@pytest.fixture
def out(tmp_path):
    """A folder with made-up results."""
    made_up_run(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def folder(tmp_path, keys):
    """An unpacked archive, of which only the metadata count here, signed by Ann."""
    (tmp_path / METADATA).write_bytes(b"{}")
    (tmp_path / SIGNATURE).write_bytes(signed(b"{}", keys / "ann"))
    return tmp_path


def said(folder, signers=None):
    """What is found of a signature."""
    (finding,) = of_signature(folder, signers)
    return finding.outcome, finding.seen


def test_who_has_signed_is_said(folder, keys):
    outcome, seen = said(folder, keys / "only_ann")
    assert outcome == "passed" and "ann@example.org" in seen
    assert said(folder, keys / "only_bob") == ("failed", f"it is by no one in {keys / 'only_bob'}")
    outcome, seen = said(folder)
    assert outcome == "not applicable" and "SHA256:" in seen and "--signers FILE" in seen


def test_a_changed_archive_has_no_signature(folder, keys):
    (folder / METADATA).write_bytes(b"{ }")
    for signers in (keys / "only_ann", None):
        outcome, seen = said(folder, signers)
        assert outcome == "failed" and seen.startswith("it is none of this archive: ")
    (folder / SIGNATURE).write_bytes(b"nonsense")
    assert [said(folder, signers)[0] for signers in (keys / "only_ann", None)] == ["failed", "failed"]


def test_without_a_signature_it_is_said_that_there_is_none(tmp_path, keys):
    assert said(tmp_path, keys / "only_ann") == ("failed", "there is none")
    assert said(tmp_path) == ("not applicable", "there is none, so that the origin of the archive is not known")


def test_without_ssh_keygen_it_is_said_so(folder, keys, monkeypatch):
    monkeypatch.setattr(signing, "_PROGRAM", "no-such-program")
    assert said(folder)[0] == "not applicable" and "is not installed" in said(folder)[1]
    assert said(folder, keys / "only_ann")[0] == "failed"
    with pytest.raises(UserError, match="is not installed"):
        signed(b"{}", keys / "ann")


def test_a_program_that_does_not_answer_is_not_waited_for(folder, monkeypatch):
    def silent_one(*words, **options):
        raise subprocess.TimeoutExpired("ssh-keygen", 60)

    monkeypatch.setattr(subprocess, "run", silent_one)
    assert said(folder) == ("failed", "ssh-keygen did not answer within 60 s")


def test_a_key_that_is_none_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot sign with .*nowhere"):
        signed(b"{}", tmp_path / "nowhere")


@pytest.mark.slow
def test_an_archive_is_signed_and_unpacked_with_its_signature(cli, out, tmp_path, keys):
    path = tmp_path / "signed.zip"
    cli("archive", "tiny", "--out", out, "--to", path, "--sign", keys / "ann")
    with opened(path) as results:
        assert said(results.parent, keys / "only_ann")[0] == "passed"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    store = store_in(out)
    (plan,) = store.plans()
    unsigned = files_of(store, plan, study(ResultsFolder(out, silent), "tiny"))
    assert files.keys() - unsigned.keys() == {SIGNATURE}
    write(tmp_path / "other.zip", files | {SIGNATURE: signed(b"something else", keys / "ann")})
    with opened(tmp_path / "other.zip") as results:
        assert said(results.parent, keys / "only_ann")[0] == "failed"
    by_ann = ("--signers", keys / "only_ann")
    assert "needs a file of allowed signers, and an archive" in cli.refuses("verify", "tiny", "--out", out, *by_ann)
    found = cli("verify", path, *by_ann, "--sample", "1", "-q", code=1)
    assert "verified: signature: Good" in found.out  # and the numbers are made up, so they differ
