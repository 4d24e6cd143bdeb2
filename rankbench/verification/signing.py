"""Signatures of archives by OpenSSH: whoever has the author's public key knows that the archive is the author's.

Signed are the metadata of the archive, which have the SHA-256 of every file in it. `ssh-keygen -Y sign` makes the
signature, and `ssh-keygen -Y verify` checks it with a file of allowed signers, as ssh-keygen(1) describes it.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.core import regular
from rankbench.core.errors import UserError
from rankbench.records.archive import METADATA, SIGNATURE

_PROGRAM, _NAMESPACE = "ssh-keygen", "rankbench"
_SECONDS = 60
_ABSENT = f"{_PROGRAM}, which makes and checks signatures, is not installed: it comes with OpenSSH"


def signed(metadata: bytes, key: Path) -> bytes:
    """The signature of an archive's metadata by the private key in this file, or by one that an SSH agent holds."""
    try:
        done = subprocess.run([_PROGRAM, "-Y", "sign", "-q", "-n", _NAMESPACE, "-f", str(key)], input=metadata,
                              capture_output=True, check=False)  # fmt: skip
    except FileNotFoundError:
        raise UserError(_ABSENT) from None
    if done.returncode or not done.stdout:
        raise UserError(f"cannot sign with {key}: {_last(done.stderr)}")
    return done.stdout


def of_signature(folder: Path, signers: Path | None) -> Iterator[Finding]:
    """What is found of the signature of an unpacked archive; `signers` has the keys of those who may have made it."""
    if not (folder / SIGNATURE).is_file():
        if signers is None:
            yield not_applicable("signature", "there is none, so that the origin of the archive is not known")
        else:
            yield failed("signature", "there is none", "ask its author to archive it with --sign")
        return
    try:
        yield _without_signers(folder) if signers is None else _by(folder, signers)
    except FileNotFoundError:
        yield Finding("signature", "not applicable" if signers is None else "failed", _ABSENT)
    except subprocess.TimeoutExpired:
        yield failed("signature", f"{_PROGRAM} did not answer within {_SECONDS} s", "")


def _without_signers(folder: Path) -> Finding:
    """Whether the signature is one of these metadata at all, and by which key."""
    done = _asked(folder, "check-novalidate")
    if done.returncode:
        return failed("signature", f"it is none of this archive: {_last(done.stdout + done.stderr)}", "")
    return not_applicable("signature", f"{_last(done.stdout)}: whose key it is, --signers FILE tells")


def _by(folder: Path, signers: Path) -> Finding:
    """Whether one of the allowed signers has made the signature."""
    found = _asked(folder, "find-principals", "-f", str(signers))
    who = found.stdout.decode("utf-8", "replace").partition("\n")[0]
    if found.returncode or not who:
        return failed("signature", f"it is by no one in {signers}", "")
    done = _asked(folder, "verify", "-f", str(signers), "-I", who)
    if done.returncode:
        return failed("signature", f"it is none of this archive: {_last(done.stdout + done.stderr)}", "")
    return passed("signature", _last(done.stdout))


def _asked(folder: Path, verb: str, *more: str) -> "subprocess.CompletedProcess[bytes]":
    """What ssh-keygen says of the signature and the metadata in a folder."""
    words = [_PROGRAM, "-Y", verb, "-n", _NAMESPACE, "-s", str(folder / SIGNATURE), *more]
    metadata = regular.content(folder / METADATA)
    return subprocess.run(words, input=metadata, capture_output=True, check=False, timeout=_SECONDS)


def _last(said: bytes) -> str:
    """The last line of what a program has said."""
    return (said.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"])[-1]
