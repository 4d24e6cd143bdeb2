"""Downloads from a local server with cut connections, wrong bytes, redirects and refusals."""

import hashlib
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from rankbench.cli.describe import describe
from rankbench.core.errors import UserError
from rankbench.data.fetching import Limits, fetch
from rankbench.data.origins import Download
from rankbench.data.publications import Publication

pytestmark = pytest.mark.slow

CONTENT = np.random.default_rng(0).bytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
BY_HAND = "rankbench data import thing PATH"


class Server:
    """What each address answers, one behaviour after the other (the last one stays), and what was asked."""

    def __init__(self):
        self.scripts, self.asked = {}, []

    def url(self, *behaviours):
        """An address that behaves so."""
        path = f"/{len(self.scripts)}"
        self.scripts[path] = list(behaviours)
        return f"http://127.0.0.1:{self.port}{path}"

    def next(self, path):
        """The behaviour whose turn it is."""
        script = self.scripts[path]
        return script.pop(0) if len(script) > 1 else script[0]


def send_all(handler, content=CONTENT):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.send_header("ETag", '"one"')
    handler.end_headers()
    handler.wfile.write(content)


def send_wrong_bytes(handler):
    send_all(handler, CONTENT[::-1])


def send_half(handler):
    """Promise everything, send half, hang up."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.send_header("ETag", '"one"')
    handler.end_headers()
    handler.wfile.write(CONTENT[: len(CONTENT) // 2])
    handler.wfile.flush()
    handler.close_connection = True


def send_rest(handler):
    """As a server that knows ranges."""
    start = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    assert handler.headers["If-Range"] == '"one"'
    handler.send_response(206)
    handler.send_header("Content-Length", str(len(CONTENT) - start))
    handler.send_header("ETag", '"one"')
    handler.end_headers()
    handler.wfile.write(CONTENT[start:])


def answer(code):
    def send(handler):
        handler.send_error(code)

    return send


def send_as(kind, content, code=200):
    """Send something of this content type, without a length."""

    def send(handler):
        handler.send_response(code)
        handler.send_header("Content-Type", kind)
        handler.end_headers()
        handler.wfile.write(content)

    return send


def drip(handler):
    """Send one byte after another until nobody listens any more."""
    handler.send_response(200)
    handler.end_headers()
    send_until_closed(handler, b"x", 0.002)


def drip_headers(handler):
    """Send headers that do not end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    send_until_closed(handler, b"x", 0.002)


def send_and_stall(handler):
    """Send one byte of many, and no more."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"x")
    threading.Event().wait(1.0)


def send_endless(handler):
    """Send zeros until nobody listens any more."""
    handler.send_response(200)
    handler.end_headers()
    send_until_closed(handler, bytes(1 << 16), 0)


def send_until_closed(handler, piece, wait):
    try:
        for _ in range(100_000):
            handler.wfile.write(piece)
            handler.wfile.flush()
            threading.Event().wait(wait)
    except OSError:
        handler.close_connection = True


def send_huge(handler):
    """Promise more than any limit."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(10**15))
    handler.end_headers()


def redirect_to(url):
    def send(handler):
        handler.send_response(302)
        handler.send_header("Location", url)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return send


@pytest.fixture
def server():
    known = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            known.asked.append((self.path, self.headers["Range"]))
            known.next(self.path)(self)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        known.port = http.server_address[1]
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield known
        http.shutdown()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Pooch waits a little longer before each try; a test need not."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.delenv("RANKBENCH_OFFLINE", raising=False)


@pytest.fixture
def get(tmp_path):
    """Fetch a file from these addresses, telling a list."""

    def run(*urls, sha256=DIGEST, told=None, **limits):
        tell = (lambda *what: told.append(what)) if told is not None else (lambda *what: None)
        return fetch(Download("thing.zip", urls, sha256), tmp_path / "data", tell, BY_HAND, Limits(**limits))

    return run


@contextmanager
def leaves_nothing(folder):
    """Whatever fails inside, no file of any name is left."""
    with pytest.raises(UserError) as caught:
        yield caught
    assert [path.name for path in folder.rglob("*") if path.is_file()] == []
    assert "\n" not in str(caught.value)


def test_a_file_arrives_and_is_told_of(server, get):
    told = []
    path = get(server.url(send_all), told=told)
    assert path.read_bytes() == CONTENT
    assert told[-1] == ("thing.zip", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_what_is_there_and_intact_is_not_asked_for_again(server, get):
    url = server.url(send_all)
    get(url)
    get(url)
    assert len(server.asked) == 1


def test_what_is_there_and_changed_is_fetched_anew(server, get):
    url = server.url(send_all)
    get(url).write_bytes(b"something else")
    assert get(url).read_bytes() == CONTENT


def test_a_cut_connection_is_taken_up_where_it_broke(server, get):
    assert get(server.url(send_half, send_rest)).read_bytes() == CONTENT
    first, second = server.asked
    assert first[1] is None
    start = int(second[1].removeprefix("bytes=").removesuffix("-"))
    assert len(CONTENT) // 2 - (1 << 16) <= start <= len(CONTENT) // 2  # all that came, in whole pieces


def test_a_server_that_knows_no_ranges_sends_all_of_it_again(server, get):
    assert get(server.url(send_half, send_all)).read_bytes() == CONTENT


def test_a_connection_that_is_always_cut_leaves_no_half_file(server, get, tmp_path):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(send_half, answer(503), send_half, send_half))
    assert "connection refused or cut" in str(caught.value) and BY_HAND in str(caught.value)


def test_wrong_bytes_are_refused_and_named(server, get, tmp_path):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(send_wrong_bytes))
    assert "thing.zip" in str(caught.value) and "wrong bytes" in str(caught.value)


def test_wrong_bytes_once_are_mended_by_asking_again(server, get):
    assert get(server.url(send_wrong_bytes, send_all)).read_bytes() == CONTENT


def test_redirects_are_followed(server, get):
    assert get(server.url(redirect_to(server.url(send_all)))).read_bytes() == CONTENT


def test_not_found_is_final_and_asked_once(server, get, tmp_path):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(answer(404)))
    assert "404 Not Found" in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize("code", [503, 429, 500])
def test_a_busy_server_is_asked_again(server, get, code):
    assert get(server.url(answer(code), send_all)).read_bytes() == CONTENT


def test_a_server_that_stays_busy_says_so(server, get, tmp_path):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(answer(503)))
    assert "503 Service Unavailable" in str(caught.value)


def test_mirrors_are_asked_in_turn(server, get):
    dead = server.url(answer(404))
    assert get("http://127.0.0.1:1/nobody", dead, server.url(send_all)).read_bytes() == CONTENT


def test_every_mirror_that_failed_is_named(server, get, tmp_path):
    urls = server.url(answer(404)), server.url(send_wrong_bytes)
    with leaves_nothing(tmp_path) as caught:
        get(*urls)
    assert all(url in str(caught.value) for url in urls)


def test_without_a_published_hash_what_comes_is_kept(server, get):
    assert get(server.url(send_all), sha256=None).read_bytes() == CONTENT


def test_offline_nothing_is_asked(server, get, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_OFFLINE", "1")
    with leaves_nothing(tmp_path) as caught:
        get(server.url(send_all))
    assert "RANKBENCH_OFFLINE" in str(caught.value)
    assert server.asked == []


def test_a_folder_that_cannot_be_written_is_named(server, get, tmp_path):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(UserError, match=r"cannot write to .*data"):
        get(server.url(send_all))


def test_stopping_half_way_leaves_no_half_file(server, tmp_path):
    def stop(*what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(Download("thing.zip", (server.url(send_all),), DIGEST), tmp_path, stop, BY_HAND)
    assert list(tmp_path.iterdir()) == []


def test_a_publication_fetches_into_the_cache_once(server, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("RANKBENCH_DATA", raising=False)
    url = server.url(send_all)
    thing = Publication("thing", "", "", "", (("thing.zip",),), (Download("thing.zip", (url,), DIGEST),))
    assert thing.missing() == "rankbench data fetch thing"
    thing.fetch(lambda *what: None)
    thing.fetch(lambda *what: None)
    assert thing.missing() is None
    assert [(held.path, held.sha256) for held in thing.held()] == [(tmp_path / "data/thing/thing.zip", DIGEST)]
    assert len(server.asked) == 1


def test_where_pooch_is_missing_the_error_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("RANKBENCH_DATA", raising=False)
    monkeypatch.delitem(sys.modules, "rankbench.data.fetching")
    monkeypatch.setitem(sys.modules, "pooch", None)
    thing = Publication("thing", "", "", "", (("thing.zip",),), (Download("thing.zip", ("https://x.org/t",), DIGEST),))
    with pytest.raises(UserError, match=r'needs the package pooch; pip install "rankbench\[data\]"'):
        thing.fetch(lambda *what: None)


def test_what_has_no_address_says_how_to_get_it():
    thing = Publication("thing", "", "", "", (("thing.zip",),), how="ask its owner")
    with pytest.raises(UserError, match=r"cannot be downloaded: ask its owner; then rankbench data import thing PATH"):
        thing.fetch(lambda *what: None)


# ---- limits ----

QUICK = {"seconds": 30.0, "silence": 5.0, "grace": 0.05}
BAD = {
    "drops": (drip, {"rate": 10_000_000.0}, "slower than 1e+07 bytes per second"),
    "drops until the deadline": (drip, {"seconds": 0.1, "rate": 0.0}, "not complete within 0.1 seconds"),
    "headers that do not end": (drip_headers, {"seconds": 0.1}, "not complete within 0.1 seconds"),
    "bytes without end": (send_endless, {"size": 10**6}, "larger than 1,000,000 bytes"),
    "a promise of too many bytes": (send_huge, {}, "larger than 10,000,000,000 bytes"),
    "a page": (send_as("text/html; charset=utf-8", b"Sorry"), {}, "a page of HTML in place of the file"),
    "a page by another name": (send_as("application/zip", b"\n<!DOCTYPE html><p>"), {}, "a page of HTML in place"),
    "a part unasked": (send_as("application/zip", b"PK", 206), {}, "206 Partial Content, which was not asked for"),
}


@pytest.mark.parametrize(("behaviour", "limits", "message"), BAD.values(), ids=BAD)
def test_what_comes_without_end_or_is_no_file_is_refused(server, get, tmp_path, behaviour, limits, message):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(behaviour), sha256=None, **{**QUICK, **limits})
    assert message in str(caught.value) and BY_HAND in str(caught.value)
    assert len(server.asked) <= 1  # none of it is tried again


def test_a_server_that_falls_silent_is_asked_again_and_then_named(server, get, tmp_path):
    with leaves_nothing(tmp_path) as caught:
        get(server.url(send_and_stall), **{**QUICK, "silence": 0.1})
    assert "no answer in time" in str(caught.value)
    assert len(server.asked) > 1


def test_after_a_refusal_the_next_mirror_is_asked(server, get):
    assert get(server.url(send_as("text/html", b"Sorry")), server.url(send_all), sha256=None).read_bytes() == CONTENT


def test_a_part_that_is_another_one_than_asked_is_refused(server, get, tmp_path):
    def send_wrong_part(handler):
        handler.send_response(206)
        handler.send_header("Content-Range", "bytes 7-9/10")
        handler.end_headers()

    with leaves_nothing(tmp_path) as caught:
        get(server.url(send_half, send_wrong_part), sha256=None)
    assert "206 Partial Content, which was not asked for" in str(caught.value)


def test_info_says_which_files_have_no_published_hash():
    assert "no published hash, so only their content is checked: BX-CSV-Dump.zip" in describe("book-crossing")
    assert "no published hash" not in describe("ml-1m")
