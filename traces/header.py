"""The first line of a trace file: which format it is, which model spoke, and provenance of any kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from traces import fields, lines
from traces.errors import TraceError, shown

FORMAT = "breakeven-trace/1"


def check(header: object) -> dict[str, Any]:
    """Return a header as read from a file.

    Raises:
        TraceError: not an object, of another format (looked at first), or without the model's name.
    """
    if not isinstance(header, dict):
        raise TraceError(f"header must be an object (got {shown(header)})")
    if "format" not in header:
        raise TraceError(f"header must have the format {FORMAT!r} (got only {shown(list(header))})")
    if header["format"] != FORMAT:
        raise TraceError(f"format must be {FORMAT!r} (got {shown(header['format'])})")
    if "model" not in header:
        raise TraceError(f"header must name the model (got only {shown(list(header))})")
    fields.name_of("model", header["model"])
    encode(header)
    return header


def line(header: Mapping[str, Any]) -> bytes:
    """Return the line that a header is in a file, `format` first.

    Raises:
        TraceError: a header that could not be read back.
    """
    encoded = encode(check({"format": FORMAT, **header}))
    lines.parse(encoded.decode())  # keys of 1 and "1" are two in Python and one in JSON
    return encoded


def encode(values: Mapping[str, Any]) -> bytes:
    """Return an object as one line of UTF-8 JSON, newline included.

    Raises:
        TraceError: something in it that such a line cannot hold.
    """
    try:
        return (json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError as error:
        lone = error.object[error.start]
        raise TraceError(f"header must be text that UTF-8 can hold (got the lone surrogate {lone!r})") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"header must be JSON ({error})") from None
