"""Traces from files: the header at once, then the requests one by one, each line checked as it is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from traces import header, lines
from traces.errors import TraceError, place, shown, suggestion
from traces.shipped import locate
from traces.trace import Request, Trace, claim

KEYS = tuple(field.name for field in fields(Request))
REQUIRED = tuple(field.name for field in fields(Request) if field.default is MISSING)


class TraceReader:
    """An open trace: iterate it once for its requests. It closes itself at the end, or as a context manager.

    Raises:
        TraceError: the file cannot be read, or its header is refused; while iterating, a line is.
    """

    source: str
    """What a report calls it: the name of a shipped trace, or the path as typed."""
    header: Mapping[str, Any]
    """Provenance: `format`, `model`, and whatever else the file says of itself."""

    def __init__(self, source: str, path: Path) -> None:
        self.source = source
        self._place = place(source)
        self._lines = lines.read(source, path)
        self._started = False
        number, first = next(self._lines, (0, None))
        if number == 0:
            raise TraceError(f"{self._place}: is empty; a trace begins with a header line")
        try:
            self.header = header.check(first)
        except TraceError as error:
            self.close()
            raise TraceError(f"{self._place}:1: {error}") from None

    def __iter__(self) -> Iterator[Request]:
        if self._started:
            raise RuntimeError(f"{self._place} is read already; open it again to read it twice")
        self._started = True
        return self._requests()

    def __enter__(self) -> TraceReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; requests not read yet stay unread."""
        self._lines.close()

    def _requests(self) -> Iterator[Request]:
        seen: set[str] = set()
        with closing(self._lines):
            for number, values in self._lines:
                try:
                    request = _request(values)
                    claim(request.id, seen)
                except TraceError as error:
                    raise TraceError(f"{self._place}:{number}: {error}") from None
                yield request
            if not seen:
                raise TraceError(f"{self._place}: holds no requests")


def open_trace(where: str | Path) -> TraceReader:
    """Open a trace, by the name of a shipped one or by path, to read its requests one by one.

    Raises:
        TraceError: there is no such trace, it cannot be read, or its header is refused.
    """
    return TraceReader(*locate(str(where)))


def load(where: str | Path) -> Trace:
    """Read a whole trace, by the name of a shipped one or by path.

    Raises:
        TraceError: there is no such trace, it cannot be read, or a line of it is refused.
    """
    with open_trace(where) as reader:
        return Trace(reader.source, reader.header, tuple(reader))


def _request(values: object) -> Request:
    if not isinstance(values, dict):
        raise TraceError(f"a request must be an object (got {shown(values)})")
    for key, value in values.items():
        if key not in KEYS:
            raise TraceError(f"unknown key {shown(key)} (known: {', '.join(KEYS)}){suggestion(key, KEYS)}")
        if value is None and key not in REQUIRED:
            raise TraceError(f"{key} must have a value (got null); leave the key out")
    missing = [key for key in REQUIRED if key not in values]
    if missing:
        raise TraceError(f"missing key {', '.join(map(repr, missing))} (got {', '.join(values) or 'no keys'})")
    return Request(**values)
