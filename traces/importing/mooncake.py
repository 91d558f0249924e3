"""Arrivals as Mooncake's traces have them: `timestamp`, in milliseconds, on every line."""

from __future__ import annotations

from collections.abc import Iterator

from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.json_values import objects


def read(file: str) -> Iterator[float]:
    """Yield when each request came, in seconds on the log's clock.

    Raises:
        TraceError: with file and line, what is no arrival.
    """
    return each(file, objects(file), _arrival_s)


def _arrival_s(entry: Entry) -> Iterator[float]:
    yield keys.number(entry.values, "timestamp") / 1e3
