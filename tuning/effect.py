"""What settings gain over the shipped ones, and how sure that is.

The interval is a percentile bootstrap over requests: the requests are drawn again with replacement, each keeping its
weight, and the objective of both settings is formed from the same draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuning.evaluation import Speedups
from tuning.score import Judge

Floats = NDArray[np.float64]

DRAWS = 2000
LEVEL = 0.95
FEWEST = 6
"""Requests below which no gain is outside noise: of five that all gain by chance, one set in 32 would."""


@dataclass(frozen=True)
class Effect:
    """The objective under some settings over that under the shipped ones."""

    ratio: float
    low: float
    """The lower end of the interval."""
    high: float
    requests: int

    def __str__(self) -> str:
        """Write the ratio with its interval."""
        return f"{self.ratio:.3f} times ({LEVEL * 100:.0f} % interval {self.low:.3f} to {self.high:.3f})"

    @property
    def said(self) -> str:
        """The number of requests in words."""
        return requests(self.requests)

    @property
    def gains(self) -> bool:
        """Whether there is a gain outside noise."""
        return self.low > 1 and self.requests >= FEWEST


def requests(count: int) -> str:
    """Return a number of requests in words.

    >>> requests(1), requests(6)
    ('1 request', '6 requests')
    """
    return f"{count} request{'s' * (count != 1)}"


def effect(judge: Judge, speedups: Speedups, seed: int = 0) -> Effect:
    """Return the effect of settings with these speedups, on the requests of a judge.

    Args:
        judge: of the same requests.
        speedups: under the settings.
        seed: of the draws.
    """
    weights = np.asarray(judge.weights())
    requests = len(weights)
    draws = np.random.default_rng(seed).integers(requests, size=(DRAWS, requests))
    whole = np.arange(requests)[None, :]
    logs = [np.log(np.asarray(one)) for one in (speedups, judge.shipped)]
    ratio, drawn = (
        np.exp(_objective(logs[0], weights, places) - _objective(logs[1], weights, places)) for places in (whole, draws)
    )
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Effect(float(ratio[0]), float(low), float(high), requests)


def _objective(logs: Floats, weights: Floats, places: NDArray[np.int64]) -> Floats:
    """Return the logarithm of the objective for every row of places: of several machines the worst."""
    drawn = weights[places]
    machines = [(drawn * row[places]).sum(axis=1) / drawn.sum(axis=1) for row in logs]
    worst: Floats = np.min(machines, axis=0)
    return worst
