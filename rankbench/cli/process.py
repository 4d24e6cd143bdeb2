"""The process of a command: its exit codes, and standard streams that discard what nobody can read any more."""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OK = 0
FAILED = 1  # what was asked for was done, and something in it failed, differs or was found
USAGE = 2  # a wrong name, value or file, or a folder that cannot be written
INTERRUPTED = 130  # Ctrl-C

_NOBODY = (errno.EPIPE, errno.EIO)  # the reader of a pipe is gone, or a terminal was closed


class _Outliving(io.FileIO):
    """A file descriptor to which anything may be written, also when nobody reads it any more."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write data, or discard it and all that follows."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _NOBODY:
                raise
        discard(self.fileno())
        return memoryview(data).nbytes


def discard(descriptor: int) -> None:
    """Let all that is still written to a file descriptor go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def outlive_readers() -> None:
    """Let this process go on when its output is closed; a stream that was never open discards everything."""
    sys.stdout, sys.stderr = _outliving(sys.stdout), _outliving(sys.stderr)


def _outliving(stream: TextIO | None) -> TextIO:
    """The stream in this form; what stands in for a stream, such as that of a test, stays as it is."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper) or stream not in (sys.__stdout__, sys.__stderr__):
        return stream
    raw = _Outliving(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",  # for terminals that cannot show every letter
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
