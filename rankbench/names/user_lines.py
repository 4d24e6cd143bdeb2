"""The line of a user's own file from which an exception came."""

import sys
import traceback
from pathlib import Path

from rankbench.core.texts import error_text
from rankbench.names.user_files import PREFIX

_SHOWN = 120  # characters of a line that are shown


def own_line(error: BaseException) -> str:
    """The innermost line of a user's own file in the traceback: `mine.py, line 14: x = 1 / 0`; empty if none is."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(PREFIX)]
    own = {str(getattr(module, "__file__", "")) for module in modules}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in own:
            line = f": {frame.line[:_SHOWN]}" if frame.line else ""
            return f"{Path(frame.filename).name}, line {frame.lineno}{line}"
    return ""


def with_own_line(error: BaseException) -> str:
    """The class and text of an error, with the line of the user's own file that it came from."""
    line = own_line(error)
    text = error_text(error)
    return f"{text} ({line})" if line else text
