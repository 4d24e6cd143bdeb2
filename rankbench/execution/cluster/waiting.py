"""How long a run waits for workers and for a scheduler that went away, what it says meanwhile, and how it ends."""

import threading
from dataclasses import dataclass
from time import monotonic

from rankbench.core.errors import Unfinished
from rankbench.records.store import Warn

_FIRST = 5.0  # seconds until the first line about a wait
_AGAIN = 60.0  # seconds between two lines


@dataclass(frozen=True)
class Waits:
    """The seconds that a run waits for workers, and for its scheduler to come back; None is no limit."""

    workers: float | None = 300.0
    scheduler: float | None = 60.0


class Wait:
    """A wait for something that is missing, which all threads of a driver share."""

    def __init__(
        self, missing: str, option: str = "", limit: float | None = None, remedy: str = "", *, say: Warn
    ) -> None:
        self._missing, self._limit, self._remedy, self._say = missing, limit, remedy, say
        self._option = f" ({option})" if option else ""
        self._lock = threading.Lock()
        self._since: float | None = None
        self._next_line = 0.0

    def note(self, missing: bool) -> None:
        """Note whether it is still missing."""
        if missing:
            self.goes_on()
        else:
            self.is_over()

    def is_over(self) -> None:
        """Note that it is there."""
        self._since = None

    def goes_on(self) -> None:
        """Note that it is still missing: now and then it is said, and after the limit the run ends with an error."""
        now = monotonic()
        with self._lock:
            if self._since is None:
                self._since, self._next_line = now, now + _FIRST
            waited = now - self._since
            if self._limit is not None and waited >= self._limit:
                problem = f"{self._missing} for {waited:.0f} s{self._option}"
                raise Unfinished(problem, remedy=f"{self._remedy}, and run the same command again")
            if now >= self._next_line:
                self._next_line = now + _AGAIN
                self._say(f"waiting: {self._missing} for {waited:.0f} s; {self._ending()}{self._option}")

    def _ending(self) -> str:
        return "the run waits without a limit" if self._limit is None else f"the run ends after {self._limit:.0f} s"
