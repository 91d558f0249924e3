"""Arrivals as Azure's traces of LLM inference have them: a CSV file with a column `TIMESTAMP` of dates and times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from traces.errors import TraceError, shown
from traces.importing.csv_rows import rows
from traces.importing.entries import Entry, each

COLUMN = "TIMESTAMP"


def read(file: str) -> Iterator[float]:
    """Yield when each request came, in seconds since 1970; a time without a zone is taken as UTC.

    Raises:
        TraceError: with file and line, what is no arrival.
    """
    return each(file, rows(file, (COLUMN,)), _arrival_s)


def _arrival_s(entry: Entry) -> Iterator[float]:
    text = entry.values[COLUMN]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TraceError(f"{COLUMN} must be a date and time, as 2023-11-16 18:17:03.97 (got {shown(text)})") from None
    yield (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
