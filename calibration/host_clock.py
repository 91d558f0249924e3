"""The clock of an engine that runs for real."""

from __future__ import annotations

import time
from datetime import UTC, datetime


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


def utc_s() -> float:
    """Return the seconds since 1970, which machines that work together agree on."""
    return time.time()


def today() -> str:
    """Return the day (UTC), as in 2026-10-02."""
    return datetime.now(UTC).date().isoformat()
