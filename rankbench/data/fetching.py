"""Downloads with several mirrors, resumed connections and checked hashes; an incomplete file is never kept."""

import os
import shutil
from pathlib import Path
from typing import Any, cast

import pooch
import requests

from rankbench.data.origins import Download, Tell
from rankbench.errors import UserError

_RETRIES = 3  # after a cut connection, a wrong hash or a busy server
_TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two pieces
_PIECE = 1 << 16
_FINAL = range(400, 500)  # HTTP status codes after which trying again is useless


class _Refused(Exception):
    """A server's final refusal, after which the download is not tried again."""


class _Resuming:
    """A downloader for pooch that resumes after a cut connection."""

    def __init__(self, part: Path, name: str, tell: Tell) -> None:
        self.part, self.name, self.tell = part, name, tell
        self.etag: str | None = None  # identifies the server's file that was partly downloaded

    def __call__(self, url: str, output: str, _pooch: pooch.Pooch) -> None:
        """Download what is missing, and move the complete file to `output`."""
        with requests.get(url, stream=True, timeout=_TIMEOUT, headers=self._headers()) as response:
            if response.status_code in _FINAL and response.status_code not in (408, 416, 429):
                raise _Refused(f"{response.status_code} {response.reason}")
            if response.status_code != requests.codes.partial_content:
                self.part.unlink(missing_ok=True)  # the server does not resume: start from the beginning
            response.raise_for_status()
            self.etag = response.headers.get("ETag")
            self._write(response)
        shutil.move(self.part, output)

    def _headers(self) -> dict[str, str]:
        """Request headers for uncompressed bytes and, if the file is still the same, only its missing part."""
        headers = {"Accept-Encoding": "identity"}
        if self.etag and self.part.exists():
            headers |= {"Range": f"bytes={self.part.stat().st_size}-", "If-Range": self.etag}
        return headers

    def _write(self, response: requests.Response) -> None:
        done = self.part.stat().st_size if self.part.exists() else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with self.part.open("ab") as out:
            for piece in response.iter_content(_PIECE):
                out.write(piece)
                done += len(piece)
                self.tell(self.name, done, total)


def fetch(download: Download, folder: Path, tell: Tell, by_hand: str) -> Path:
    """The path of the file in `folder`, downloaded from the first mirror that works unless it is there intact."""
    if os.environ.get("RANKBENCH_OFFLINE") == "1":
        raise UserError(f"RANKBENCH_OFFLINE=1 forbids fetching {download.name}: unset it, or {by_hand}")
    failures = []
    for url in download.urls:
        try:
            return _from_mirror(download, url, folder, tell)
        except (_Refused, ValueError, requests.RequestException) as error:
            failures.append(f"{url}: {_in_words(error)}")
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error
    raise UserError(f"cannot fetch {download.name}: {'; '.join(failures)}; get it by hand, then: {by_hand}")


def _from_mirror(download: Download, url: str, folder: Path, tell: Tell) -> Path:
    """The file from one address, fetched by pooch, which checks the hash before it renames the file."""
    pooch.get_logger().setLevel("WARNING")  # `tell` reports the progress
    part = folder / f"{download.name}.partial"
    folder.mkdir(parents=True, exist_ok=True)
    registry = pooch.create(
        path=folder,
        base_url="",
        registry={download.name: f"sha256:{download.sha256}" if download.sha256 else None},
        urls={download.name: url},
        retry_if_failed=_RETRIES,
    )
    try:
        downloader = cast(Any, _Resuming(part, download.name, tell))
        return Path(registry.fetch(download.name, downloader=downloader))
    finally:
        part.unlink(missing_ok=True)


def _in_words(error: Exception) -> str:
    """A short text for a download error."""
    if isinstance(error, _Refused):
        return str(error)
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.RequestException):
        return "connection refused or cut"
    return "wrong bytes (SHA-256 differs from the published one)"
