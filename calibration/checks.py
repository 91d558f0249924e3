"""Checks that the values of a profile share, wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

from calibration.errors import ProfileError

QUOTED = 60
"""Characters of a value that an error quotes at most."""
LONGEST_S = 1000.0
"""No forward takes this long; a larger figure is milliseconds or microseconds taken for seconds."""


def positive(seconds: float, where: str) -> None:
    """Refuse a time that is not above 0 and below 1000 s.

    Raises:
        ProfileError: out of bounds or not a number.
    """
    if not 0 < seconds < LONGEST_S:
        raise ProfileError(f"{where}: must be above 0 and below {LONGEST_S:g} s (got {seconds!r})")


def not_negative(seconds: float, where: str) -> None:
    """Refuse a time that is below 0 or not below 1000 s.

    Raises:
        ProfileError: out of bounds or not a number.
    """
    if not 0 <= seconds < LONGEST_S:
        raise ProfileError(f"{where}: must be at least 0 and below {LONGEST_S:g} s (got {seconds!r})")


def legible(words: str, where: str) -> None:
    """Refuse text that is not one printable line; a space of any width is printable.

    Raises:
        ProfileError: empty, blank, or with a character that does not print.
    """
    if not words.strip() or not all(letter.isprintable() or category(letter) == "Zs" for letter in words):
        raise ProfileError(f"{where}: must be one line of printable text (got {short(words)!r})")


def short(words: str) -> str:
    """Return text as an error quotes it: cut where it is long."""
    return words if len(words) <= QUOTED else words[:QUOTED] + "..."


def ascending(values: Sequence[int], where: str) -> None:
    """Refuse an empty list or one that does not strictly ascend.

    Raises:
        ProfileError: empty, a value twice, or out of order.
    """
    if not values:
        raise ProfileError(f"{where}: must have at least one entry")
    for before, after in pairwise(values):
        if after == before:
            raise ProfileError(f"{where}: has {after} twice")
        if after < before:
            raise ProfileError(f"{where}: must ascend (got {after} after {before})")
