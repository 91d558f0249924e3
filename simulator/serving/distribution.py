"""Percentiles of weighted values, by nearest rank."""

from __future__ import annotations

from collections.abc import Mapping

PERCENTS = (50, 95, 99)


def percentile(weights: Mapping[float, float], percent: int, *, slow: bool = False) -> float:
    """Return the smallest value that at least `percent` of the weight does not exceed.

    Args:
        weights: how often each value occurs, or for how long it held; not empty.
        percent: from 1 to 100.
        slow: count from the largest down, so that the high percentiles of a rate are its slow tail.

    >>> percentile({10.0: 1, 20.0: 1, 30.0: 2}, 50), percentile({10.0: 1, 20.0: 1, 30.0: 2}, 51)
    (20.0, 30.0)
    >>> percentile({10.0: 1, 20.0: 1, 30.0: 2}, 95, slow=True)
    10.0
    """
    least = percent * sum(weights.values())
    passed = 0.0
    value = 0.0
    for value in sorted(weights, reverse=slow):
        passed += weights[value]
        if passed * 100 >= least:
            break
    return value


def spread(weights: Mapping[float, float], *, slow: bool = False) -> dict[str, float] | None:
    """Return the mean and the percentiles that reports show; None where there is nothing to tell of."""
    whole = sum(weights.values())
    if not whole:
        return None
    mean = sum(value * weight for value, weight in weights.items()) / whole
    return {"mean": mean, **{f"p{percent}": percentile(weights, percent, slow=slow) for percent in PERCENTS}}
