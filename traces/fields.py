"""The rules of each value of a request: what is accepted, and the message when it is not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from traces.errors import TraceError, shown, suggestion

Finish = Literal["stop", "length", "guard"]
Tokens: TypeAlias = npt.NDArray[np.int32]
Margins: TypeAlias = npt.NDArray[np.float32]

FINISHES: tuple[Finish, ...] = get_args(Finish)
LARGEST_TOKEN = int(np.iinfo(np.int32).max)
LARGEST_MARGIN = float(np.finfo(np.float32).max)


def string(name: str, value: object) -> str:
    """Return a string that UTF-8 can carry.

    Raises:
        TraceError: not a string, or one with a lone surrogate.
    """
    if not isinstance(value, str):
        raise TraceError(f"{name} must be a string (got {shown(value)})")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        lone = value[error.start]
        raise TraceError(f"{name} must be text that UTF-8 can hold (got the lone surrogate {lone!r})") from None
    return value


def name_of(name: str, value: object) -> str:
    """Return a string that is not empty.

    Raises:
        TraceError: not a string, or an empty one.
    """
    if not isinstance(value, str) or not value:
        raise TraceError(f"{name} must be a non-empty string (got {shown(value)})")
    return string(name, value)


def switch(name: str, value: object) -> bool:
    """Return a boolean.

    Raises:
        TraceError: anything else, 0 and 1 included.
    """
    if not isinstance(value, bool):
        raise TraceError(f"{name} must be true or false (got {shown(value)})")
    return value


def finish(value: object) -> Finish:
    """Return how a reply ended.

    Raises:
        TraceError: none of the three ways.
    """
    if isinstance(value, str):
        for known in FINISHES:
            if value == known:
                return known
        raise TraceError(
            f"finish must be one of {', '.join(FINISHES)} (got {shown(value)}){suggestion(value, FINISHES)}"
        )
    raise TraceError(f"finish must be one of {', '.join(FINISHES)} (got {shown(value)})")


def tokens(name: str, value: object) -> Tokens:
    """Return token ids as a read-only int32 array of their own.

    Raises:
        TraceError: not a list of at least one integer from 0 to 2147483647; `True` and `1.0` are no integers.
    """
    listed, integers = _numbers(name, value, "token ids", {int})
    if not listed:
        raise TraceError(f"{name} must hold at least one token (got {shown(listed)})")
    if integers:
        wide = _array(listed, np.int64)
        if wide is not None and wide.min() >= 0 and wide.max() <= LARGEST_TOKEN:
            return _frozen(wide.astype(np.int32))
    index = next(i for i, token in enumerate(listed) if type(token) is not int or not 0 <= token <= LARGEST_TOKEN)
    got = shown(listed[index])
    raise TraceError(f"{name}[{index}] must be an integer from 0 to {LARGEST_TOKEN} (got {got})")


def margins(value: object, reply_length: int) -> Margins:
    """Return logit margins, one per reply token, as a read-only float32 array of their own.

    Raises:
        TraceError: not a list of that many finite numbers >= 0.
    """
    listed, real = _numbers("margins", value, "numbers", {int, float})
    if len(listed) != reply_length:
        raise TraceError(f"margins must hold one number per reply token (got {len(listed)} for {reply_length})")
    if real:
        wide = _array(listed, np.float64)
        # Larger than a float32 is, too, not a logit; the comparison is false for NaN.
        if wide is not None and wide.min() >= 0 and wide.max() <= LARGEST_MARGIN:
            return _frozen(wide.astype(np.float32))
    index = next(
        i
        for i, margin in enumerate(listed)
        if type(margin) not in (int, float) or not 0 <= margin <= LARGEST_MARGIN  # a NaN is not within either
    )
    raise TraceError(f"margins[{index}] must be a finite number >= 0 (got {shown(listed[index])})")


def limit(value: object, finish: Finish, reply_length: int) -> int | None:
    """Return the effective limit of a reply in tokens: as given, implied by `length`, or none.

    Raises:
        TraceError: not an integer of at least 1, or one that the reply contradicts.
    """
    if value is None:
        return reply_length if finish == "length" else None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise TraceError(f"max_tokens must be an integer >= 1 (got {shown(value)})")
    if finish == "length" and value != reply_length:
        raise TraceError(
            f"max_tokens must be the reply's length when finish is 'length' "
            f"(got {shown(value)} for {reply_length} tokens)"
        )
    if value < reply_length:
        raise TraceError(
            f"max_tokens must not be below the reply's length (got {shown(value)} for {reply_length} tokens)"
        )
    return int(value)


def arrival(value: object) -> float | None:
    """Return an arrival in seconds after the trace's start.

    Raises:
        TraceError: neither None nor a finite number >= 0.
    """
    if value is None:
        return None
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            seconds = float(value) + 0.0  # turns -0.0 into 0.0
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    raise TraceError(f"arrival_s must be a finite number >= 0 (got {shown(value)})")


def reason(value: object, eligible: bool) -> str | None:
    """Return why a request never drafts.

    Raises:
        TraceError: not a string, or given for a request that may draft.
    """
    if value is None:
        return None
    text = string("reason", value)
    if eligible:
        raise TraceError(f"reason needs eligible to be false (got {shown(text)})")
    return text


def tags(value: object) -> tuple[str, ...]:
    """Return the tags of a request.

    Raises:
        TraceError: not a list of strings.
    """
    return tuple(string(f"tags[{i}]", tag) for i, tag in enumerate(_listed("tags", value, "strings")))


def _listed(name: str, value: object, what: str) -> Sequence[Any]:
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(listed, list | tuple):
        raise TraceError(f"{name} must be a list of {what} (got {shown(value)})")
    return listed


def _numbers(name: str, value: object, what: str, kinds: set[type]) -> tuple[Sequence[Any], bool]:
    """Return a list of plain Python values, so that one check serves files and programs, and whether all are of kinds.

    The types of all elements are taken in one pass of C; unlike for isinstance, bool is another type than int.
    """
    listed = _listed(name, value, what)
    found = set(map(type, listed))
    if any(issubclass(kind, np.number) for kind in found):
        listed = [item.item() if isinstance(item, np.number) else item for item in listed]
        found = set(map(type, listed))
    return listed, found <= kinds


def _array(listed: Sequence[Any], dtype: type[np.generic]) -> npt.NDArray[Any] | None:
    try:
        return np.array(listed, dtype=dtype)
    except OverflowError:  # an integer beyond the type: its caller says which
        return None


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
