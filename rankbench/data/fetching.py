"""Downloads with several mirrors, resumed connections, checked hashes and limits; an incomplete file is never kept."""

import os
import queue
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, cast

from rankbench.core.errors import UserError
from rankbench.data.origins import INSTALL, Download, Tell

try:
    import pooch
    import requests
    from urllib3.exceptions import HTTPError, ReadTimeoutError
except ModuleNotFoundError as error:
    raise UserError("a download needs the package pooch", remedy=INSTALL) from error

_RETRIES = 3  # after a cut connection, a wrong hash or a busy server
_PIECE = 1 << 16
_FINAL = range(400, 500)  # HTTP status codes after which trying again is useless
_PAGES = (b"<!doctype html", b"<html")  # how a page begins that a server sends in place of a file


@dataclass(frozen=True)
class Limits:
    """The limits of a download: of one file, from all its mirrors together."""

    seconds: float = 6 * 3600.0  # from the first request to the last byte
    rate: float = 1000.0  # bytes per second, on average from when the first bytes come
    grace: float = 60.0  # seconds before the rate counts
    size: int = 10 * 10**9  # bytes
    connect: float = 10.0  # seconds to connect
    silence: float = 60.0  # seconds between two pieces


class _Refused(Exception):
    """A final refusal, by a server or for what it sends, after which the mirror is not tried again."""


class _Resuming:
    """A downloader for pooch that resumes after a cut connection and keeps the limits."""

    def __init__(self, part: Path, download: Download, tell: Tell, limits: Limits, started: float) -> None:
        self.part, self.download, self.tell = part, download, tell
        self.limits, self.started = limits, started
        self.etag: str | None = None  # identifies the server's file that was partly downloaded

    def __call__(self, url: str, output: str, _pooch: pooch.Pooch) -> None:
        """Download what is missing, and move the complete file to `output`."""
        headers = self._headers()
        with self._answer(url, headers) as response:
            if response.status_code in _FINAL and response.status_code not in (408, 416, 429):
                raise _Refused(f"{response.status_code} {response.reason}")
            if response.status_code != requests.codes.partial_content:
                self.part.unlink(missing_ok=True)  # the server does not resume: start from the beginning
            elif not self._resumes(response, headers):
                raise _Refused("206 Partial Content, which was not asked for")
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

    def _answer(self, url: str, headers: dict[str, str]) -> requests.Response:
        """The server's answer up to its headers, which another thread waits for: they may come letter by letter."""
        answers: queue.Queue[requests.Response | Exception] = queue.Queue()

        def ask() -> None:
            timeout = (self.limits.connect, self.limits.silence)
            try:
                answers.put(requests.get(url, stream=True, timeout=timeout, headers=headers))
            except Exception as error:
                answers.put(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            answer = answers.get(timeout=max(0.0, self.started + self.limits.seconds - monotonic()))
        except queue.Empty:
            raise self._late() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _resumes(self, response: requests.Response, headers: dict[str, str]) -> bool:
        """Whether a part of the file is the part that was asked for."""
        asked = headers.get("Range", "none").removeprefix("bytes=")
        given = response.headers.get("Content-Range", f"bytes {asked}")
        return "Range" in headers and given.startswith(f"bytes {asked}")

    def _write(self, response: requests.Response) -> None:
        done = self.part.stat().st_size if self.part.exists() else 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdecimal() else None
        self._check_size(total or 0)
        with self.part.open("ab") as out:
            for piece in self._pieces(response):
                if done == 0:
                    self._check_kind(response, piece)
                done += len(piece)
                self._check_size(done)
                out.write(piece)
                self.tell(self.download.name, done, total)

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        """The bytes as they come, while they come fast enough."""
        begun, came = monotonic(), 0
        try:
            while piece := response.raw.read1(_PIECE, decode_content=True):
                came += len(piece)
                now = monotonic()
                if now > self.started + self.limits.seconds:
                    raise self._late()
                if now - begun > self.limits.grace and came < self.limits.rate * (now - begun):
                    raise _Refused(f"slower than {self.limits.rate:g} bytes per second")
                yield piece
        except ReadTimeoutError as error:
            raise requests.Timeout(error) from None
        except HTTPError as error:
            raise requests.ConnectionError(error) from None

    def _check_size(self, size: int) -> None:
        if size > self.limits.size:
            raise _Refused(f"larger than {self.limits.size:,} bytes")

    def _check_kind(self, response: requests.Response, piece: bytes) -> None:
        """Refuse a page in place of a file, where no published hash would tell."""
        is_page = response.headers.get("Content-Type", "").lower().startswith("text/html")
        if not self.download.sha256 and (is_page or piece.lstrip()[:14].lower().startswith(_PAGES)):
            raise _Refused("a page of HTML in place of the file")

    def _late(self) -> _Refused:
        return _Refused(f"not complete within {self.limits.seconds:g} seconds")


def fetch(download: Download, folder: Path, tell: Tell, by_hand: str, limits: Limits | None = None) -> Path:
    """The path of the file in `folder`, downloaded from the first mirror that works unless it is there intact."""
    part = folder / f"{download.name}.partial"
    resuming = _Resuming(part, download, tell, limits or Limits(), monotonic())
    if os.environ.get("RANKBENCH_OFFLINE") == "1":
        raise UserError(f"RANKBENCH_OFFLINE=1 forbids fetching {download.name}: unset it, or {by_hand}")
    failures = []
    for url in download.urls:
        try:
            return _from_mirror(url, folder, resuming)
        except (_Refused, ValueError, requests.RequestException) as error:
            failures.append(f"{url}: {_in_words(error)}")
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error
    raise UserError(f"cannot fetch {download.name}: {'; '.join(failures)}; get it by hand, then: {by_hand}")


def _from_mirror(url: str, folder: Path, resuming: _Resuming) -> Path:
    """The file from one address, fetched by pooch, which checks the hash before it renames the file."""
    pooch.get_logger().setLevel("WARNING")  # `tell` reports the progress
    download, part = resuming.download, resuming.part
    resuming.etag = None  # mirrors share no tags
    folder.mkdir(parents=True, exist_ok=True)
    registry = pooch.create(
        path=folder,
        base_url="",
        registry={download.name: f"sha256:{download.sha256}" if download.sha256 else None},
        urls={download.name: url},
        retry_if_failed=_RETRIES,
    )
    try:
        return Path(registry.fetch(download.name, downloader=cast(Any, resuming)))
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
