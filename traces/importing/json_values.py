"""The objects of a JSON file, each with the line at which it begins: one on every line, or all in one list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traces import lines
from traces.errors import TraceError, place, shown
from traces.files import read_bytes

_BLANKS = " \t\r\n"
"""What JSON takes for blank."""


def objects(file: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield where each object begins, as file and line, and the object; blank lines are passed over.

    Raises:
        TraceError: the file cannot be read, is not UTF-8 or not JSON, or holds something else than objects.
    """
    text = read_text(file)
    listed = text.lstrip(_BLANKS).startswith("[")
    count = 0
    for line, value in _listed(file, text) if listed else _lined(file, text):
        where = f"{place(file)}:{line}"
        if not isinstance(value, dict):
            raise TraceError(f"{where}: must be an object (got {shown(value)})")
        count += 1
        yield where, value
    if not count:
        raise TraceError(f"{place(file)}: holds no objects")


def read_text(file: str) -> str:
    """Return the text of a file, plain or gzip, with its line ends as they are and without a byte order mark.

    Raises:
        TraceError: the file cannot be read, or is not UTF-8.
    """
    data = read_bytes(file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(f"{place(file)}:{line}: not UTF-8 (got 0x{data[error.start]:02x})") from None


def _lined(file: str, text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip(_BLANKS):
            try:
                yield number, lines.parse(line)
            except TraceError as error:
                raise TraceError(f"{place(file)}:{number}: {error}") from None


def _listed(file: str, text: str) -> Iterator[tuple[int, Any]]:
    line, counted, at, more = 1, 0, text.index("[") + 1, False
    try:
        while True:
            at = _skip(text, at)
            line, counted = line + text.count("\n", counted, at), at
            if text[at : at + 1] == "]" and not more:
                break
            if more and text[at : at + 1] in ("]", ""):
                raise TraceError(f"a list must go on after ',' (got {text[at : at + 20]!r})")
            value, at = lines.parse_at(text, at)
            yield line, value
            at = _skip(text, at)
            if text[at : at + 1] not in (",", "]"):
                line += text.count("\n", counted, at)
                raise TraceError(f"a list must go on with ',' or end with ']' (got {text[at : at + 20]!r})")
            more = text[at] == ","
            at += more
        if after := text[at + 1 :].strip(_BLANKS):
            raise TraceError(f"nothing may follow the list (got {after[:20]!r})")
    except TraceError as error:
        raise TraceError(f"{place(file)}:{line}: {error}") from None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
