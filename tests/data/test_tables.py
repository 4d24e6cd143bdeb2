"""The lines of a file: the same whatever their ends and where pieces are cut, and blank ones cost next to nothing."""

import gzip
import re
import time

import numpy as np
import pytest

from rankbench.data import tables
from rankbench.data.files import File


def of_python(content: bytes) -> list[tuple[int, str]]:
    """The lines that are not blank with their numbers, as Python's regular expressions cut them."""
    texts = re.split("\r\n|\r|\n", content.decode())
    return [(number, text) for number, text in enumerate(texts, start=1) if text.strip(" ")]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("letters", ["\n\r x", "\n\n\n\n\r x", "\n\r\r\r\r\r ", "xxxxxxxy ,\r\n"], ids=ascii)
def test_lines_are_those_of_python_wherever_a_piece_ends(tmp_path, monkeypatch, piece, letters):
    monkeypatch.setattr(tables, "_PIECE", piece)
    rng = np.random.default_rng(0)
    for number in range(60):
        content = "".join(rng.choice(list(letters), number)).encode()
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content)
        assert list(tables.lines(File(path))) == of_python(content), content


@pytest.mark.trust
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b" \n"], ids=ascii)
def test_forty_million_blank_lines_take_no_time(tmp_path, end):
    """They took fifteen seconds of the processor when each was looked at by itself; now it is one."""
    path = tmp_path / "blank.csv.gz"
    path.write_bytes(gzip.compress(end * 40_000_000 + b"1,2,3\n"))
    assert path.stat().st_size < 100_000
    start = time.process_time()
    assert list(tables.lines(File(path))) == [(40_000_001, "1,2,3")]
    assert time.process_time() - start < 8
