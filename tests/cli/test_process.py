"""Standard streams that nobody reads any more discard what is written."""

import io
import os
import sys

import pytest

from rankbench.cli.process import _Outliving, _outliving


def test_what_nobody_reads_any_more_is_discarded():
    reading, writing = os.pipe()
    stream = _Outliving(writing, "w")
    assert stream.write(b"read") == 4 and os.read(reading, 9) == b"read"
    os.close(reading)
    assert [stream.write(b"lost"), stream.write(memoryview(b"this too"))] == [4, 8]
    stream.close()


def test_other_errors_stay():
    with _Outliving(os.open("/dev/full", os.O_WRONLY), "w") as stream, pytest.raises(OSError, match="No space left"):
        stream.write(b"too much")


def test_a_stream_that_is_not_there_discards_and_one_that_stands_in_stays():
    with _outliving(None) as nowhere:
        assert nowhere.write("nothing") == 7
    stand_in = io.StringIO()
    assert _outliving(stand_in) is stand_in
    real = _outliving(sys.__stdout__)
    assert real.fileno() == sys.__stdout__.fileno() and real.errors == "backslashreplace"
