"""Values of somebody else's object by key: what is needed must be there, what else there is does not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from traces import fields
from traces.errors import TraceError, shown

_LONGEST_NAMES = 400


def value(found: Mapping[str, Any], key: str) -> Any:
    """Return a value that is neither missing nor null.

    Raises:
        TraceError: it is.
    """
    if found.get(key) is None:
        had = "null" if key in found else names(found) or "no keys"
        raise TraceError(f"must have {key!r} (got {had})")
    return found[key]


def number(found: Mapping[str, Any], key: str) -> float:
    """Return a finite number >= 0.

    Raises:
        TraceError: it is missing or something else.
    """
    got = value(found, key)
    if isinstance(got, int | float) and not isinstance(got, bool):
        try:
            read = float(got)
        except OverflowError:  # an integer beyond every float
            read = math.inf
        if math.isfinite(read) and read >= 0:
            return read
    raise TraceError(f"{key} must be a finite number >= 0 (got {shown(got)})")


def text(found: Mapping[str, Any], key: str) -> str:
    """Return a string that UTF-8 can carry.

    Raises:
        TraceError: it is missing or something else.
    """
    return fields.string(key, value(found, key))


def listed(found: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list.

    Raises:
        TraceError: it is missing or something else.
    """
    got = value(found, key)
    if not isinstance(got, list):
        raise TraceError(f"{key} must be a list (got {shown(got)})")
    return got


def ids(found: Mapping[str, Any], key: str, count_key: str | None = None) -> list[int]:
    """Return a list of token ids, as many as another value says if that is there; what is in it is checked later.

    Raises:
        TraceError: it is missing, no list, or of another length.
    """
    got = listed(found, key)
    counted = len(got) if count_key is None else found.get(count_key, len(got))
    if counted != len(got):
        raise TraceError(f"{key} must be as many as {count_key} says (got {len(got)} for {shown(counted)})")
    return got


def names(found: Iterable[str]) -> str:
    r"""Return what keys or columns are called, for a message: on one line, and not all of too many.

    >>> names(["prompt", "reply"]), names(["two\nlines"])
    ('prompt, reply', "['two\\nlines']")
    """
    listed = list(found)
    text = ", ".join(listed)
    return text if len(text) <= _LONGEST_NAMES and (not text or text.isprintable()) else shown(listed)
