"""What a trace can do wrong, and how its values are shown in the message."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

_LONGEST_VALUE = 80
_LONGEST_PATH = 4096

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2
_SHORT.maxstring = _SHORT.maxother = 60


class TraceError(ValueError):
    """A trace that cannot be found, read or written; the message is one line."""


def shown(value: object) -> str:
    """Return the repr of a value on one line of at most 80 characters, however large or deep the value is."""
    try:
        text = " ".join(_SHORT.repr(value).splitlines())
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        text = "an integer of more than 4300 digits"
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def place(where: str) -> str:
    """Return a file's name as a message begins with it: as typed, unless that would break the line."""
    if len(where) > _LONGEST_PATH:
        return shown(where)
    return where if where.isprintable() else repr(where)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the known one it resembles, if any.

    Example:
        >>> suggestion("stroy", ["chat", "story"])
        "; did you mean 'story'?"
        >>> suggestion("poem", ["chat", "story"])
        ''
    """
    close = difflib.get_close_matches(word[:_LONGEST_VALUE], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
