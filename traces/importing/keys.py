"""Values of somebody else's object by key: what is needed must be there, what else there is does not matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from traces.errors import TraceError, shown


def value(found: Mapping[str, Any], key: str) -> Any:
    """Return a value that is neither missing nor null.

    Raises:
        TraceError: it is.
    """
    if found.get(key) is None:
        had = "null" if key in found else ", ".join(found) or "no keys"
        raise TraceError(f"must have {key!r} (got {had})")
    return found[key]


def number(found: Mapping[str, Any], key: str) -> float:
    """Return a finite number >= 0.

    Raises:
        TraceError: it is missing or something else.
    """
    got = value(found, key)
    if isinstance(got, bool) or not isinstance(got, int | float) or not math.isfinite(got) or got < 0:
        raise TraceError(f"{key} must be a finite number >= 0 (got {shown(got)})")
    return got


def text(found: Mapping[str, Any], key: str) -> str:
    """Return a string.

    Raises:
        TraceError: it is missing or something else.
    """
    got = value(found, key)
    if not isinstance(got, str):
        raise TraceError(f"{key} must be a string (got {shown(got)})")
    return got


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
