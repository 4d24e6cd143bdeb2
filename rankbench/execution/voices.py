"""What a solver prints: it comes through pipes to the process that runs the cell, which writes it out in plain lines.

A solver may print anything, such as codes that change a terminal's colours, its title or what stands on it. They are
shown and not carried out.
"""

import os
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from rankbench.core.texts import inert

OUTPUTS = (1, 2)  # standard output and standard error
_READ = 1 << 16  # bytes at a time, and of a line that does not end
_END = re.compile(rb"\r\n|\n|\r")  # of a line; a bar of progress goes back to the start of its own


def keep_outputs_free() -> None:
    """Let no pipe of this process get the number of an output, which may be closed, or of the input."""
    for number in (0, *OUTPUTS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number


def speak_through(voices: Sequence[Connection]) -> None:
    """Let this process print into the pipes, and so all processes that it starts."""
    for voice, number in zip(voices, OUTPUTS, strict=False):
        os.dup2(voice.fileno(), number)
        voice.close()


def relay(voices: Sequence[Connection]) -> threading.Thread:
    """A thread that writes out what comes through the pipes, on the outputs of this process, until all are closed."""
    thread = threading.Thread(target=_relay, args=(voices,), daemon=True)
    thread.start()
    return thread


def _relay(voices: Sequence[Connection]) -> None:
    numbers = dict(zip(voices, OUTPUTS, strict=False))
    begun = dict.fromkeys(voices, b"")
    while begun:
        for voice in wait([*begun]):
            assert isinstance(voice, Connection), "these are all that it waits for"
            heard = os.read(voice.fileno(), _READ)
            *lines, begun[voice] = _END.split(begun[voice] + heard)
            if len(begun[voice]) > _READ or (not heard and begun[voice]):
                lines.append(begun[voice])
                begun[voice] = b""
            _write(numbers[voice], lines)
            if not heard:
                voice.close()
                del begun[voice]


def _write(number: int, lines: Sequence[bytes]) -> None:
    """Write lines to a file descriptor; what it does not take is lost."""
    told = (inert(line.decode("utf-8", "backslashreplace").expandtabs()) for line in lines)
    left = "".join(f"{line}\n" for line in told).encode("utf-8", "backslashreplace")
    with suppress(OSError):
        while left:
            left = left[os.write(number, left) :]
