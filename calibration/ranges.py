"""Bounds that every time in a profile keeps to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from calibration.errors import ProfileError

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
