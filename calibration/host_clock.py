"""The clock of an engine that runs for real."""

from __future__ import annotations

import time


class HostClock:
    """The half of an engine that is about the host's own time."""

    def clock_s(self) -> float:
        """Return the seconds of the most precise clock that the system has."""
        return time.perf_counter()

    def work(self, seconds: float) -> None:
        """Keep the host busy so long; a sleep would free it, which a server that detokenises is not."""
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            pass
