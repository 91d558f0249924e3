"""The lines of a trace file, plain or gzip, each as the JSON value it holds; one line is in memory at a time."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from traces.errors import TraceError, place, shown

LONGEST_LINE_BYTES = 64 * 2**20
"""A line above this is refused: it is no request but a file of another kind, and must not fill the memory."""

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = "\ufeff"
_SHOWN = 100


def read(source: str, path: Path) -> Generator[tuple[int, Any], None, None]:
    """Yield each line's number, from 1, and its JSON value; the file is open until the generator ends.

    Raises:
        TraceError: the file cannot be read, or a line breaks the rules that hold for every line.
    """
    number = 0
    try:
        with path.open("rb") as raw, _unpacked(raw) as file:
            while line := file.readline(LONGEST_LINE_BYTES + 1):
                number += 1
                yield number, _value(line)
    except TraceError as error:
        raise TraceError(f"{place(source)}:{number}: {error}") from None
    except EOFError:
        raise TraceError(f"{place(source)}:{number + 1}: the gzip data ends too early; the file is cut") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{place(source)}:{number + 1}: the gzip data is corrupt ({error})") from error
    except OSError as error:
        raise TraceError(f"{place(source)}: cannot be read ({error.strerror or error})") from error


def _unpacked(raw: io.BufferedReader) -> io.BufferedIOBase:
    return gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP_MAGIC) else raw


def _value(line: bytes) -> Any:
    if len(line) > LONGEST_LINE_BYTES:
        raise TraceError(f"a line must be at most {LONGEST_LINE_BYTES >> 20} MiB long (got more)")
    if not line.endswith(b"\n"):
        end = line[-20:].decode(errors="replace")
        raise TraceError(f"the last line must end with a newline; the file is cut (it ends in {end!r})")
    try:
        text = line[:-1].decode()
    except UnicodeDecodeError as error:
        raise TraceError(f"not UTF-8 (got 0x{line[error.start]:02x} at byte {error.start + 1})") from None
    if not text or text.isspace():
        raise TraceError(f"a line must hold a JSON object (got the blank line {shown(text)})")
    if text.startswith(_BYTE_ORDER_MARK):
        raise TraceError("not plain UTF-8 (got a byte order mark); save the file without one")
    return parse(text)


def parse(text: str) -> Any:
    """Return the JSON value of a line.

    Raises:
        TraceError: not JSON, or JSON with a key twice in an object, `NaN` or `Infinity`.
    """
    with _refused(text):
        return _DECODER.decode(text)


def parse_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, which is no blank, and where it ends.

    Raises:
        TraceError: as `parse`.
    """
    with _refused(text[start : start + _SHOWN]):
        return _DECODER.raw_decode(text, start)


@contextmanager
def _refused(text: str) -> Iterator[None]:
    try:
        yield
    except TraceError:
        raise
    except json.JSONDecodeError as error:
        what = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
        column = f"column {error.colno}" + (f" of line {error.lineno}" if "\n" in error.doc else "")
        got = error.doc[error.pos : error.pos + 20]
        raise TraceError(f"not JSON: {what} at {column} (got {got!r})") from None
    except RecursionError:
        raise TraceError(f"not JSON that can be read: nested too deeply (got {shown(text)})") from None
    except ValueError:  # Python refuses to read them, since that takes quadratic time
        raise TraceError(
            f"not JSON that can be read: an integer of more than 4300 digits (got {shown(text)})"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise TraceError(f"key {shown(key)} must stand once in an object (got it twice)")
            seen.add(key)
    return values


def _refuse(constant: str) -> NoReturn:
    raise TraceError(f"not JSON: a number must be finite (got {constant})")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
