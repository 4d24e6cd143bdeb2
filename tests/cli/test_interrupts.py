"""Ctrl-C stops the command line wherever it comes."""

import subprocess
import sys

PROGRAM = """
import sys, time
from rankbench.cli.app import repeat_lost_interrupt

class Destroyed:
    def __del__(self):
        raise {error}

sys.unraisablehook = repeat_lost_interrupt
Destroyed()
time.sleep(20)
"""


def ended(error: str, seconds: float) -> tuple[str, bool]:
    """What a program prints on standard error whose object is destroyed with this error, and whether it went on."""
    command = [sys.executable, "-c", PROGRAM.format(error=error).replace("20", str(seconds))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return done.stderr, done.returncode == 0


def test_one_that_comes_while_an_object_is_destroyed_is_not_lost():
    said, went_on = ended("KeyboardInterrupt", 20)
    assert not went_on and said.rstrip().endswith("KeyboardInterrupt") and "Exception ignored" not in said


def test_other_errors_of_objects_that_are_destroyed_are_told_as_ever():
    said, went_on = ended("ValueError('odd')", 0)
    assert went_on and "Exception ignored" in said and "ValueError: odd" in said
