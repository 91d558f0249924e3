"""Widths that were not measured, filled in between those that were."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise


def filled(device: Mapping[int, tuple[float, ...]]) -> dict[int, tuple[float, ...]]:
    """Return a table with every width up to the widest, each on the line between its measured neighbours.

    >>> filled({1: (1.0,), 3: (2.0,)})
    {1: (1.0,), 2: (1.5,), 3: (2.0,)}
    """
    full = {1: device[1]}
    for left, right in pairwise(sorted(device)):
        for width in range(left + 1, right):
            share = (width - left) / (right - left)
            full[width] = tuple(a + share * (b - a) for a, b in zip(device[left], device[right], strict=True))
        full[right] = device[right]
    return full
