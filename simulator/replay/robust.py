"""Robust sums of step times over repeats, and their intervals.

Every repeat of a run does the same steps, so each step has as many times as there are repeats. Their median is what
the step costs, whatever disturbed single repeats; a run costs the sum of its steps' medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.run import kind_order
from simulator.schedule import Event

RESAMPLES = 400
"""Bootstrap resamples behind an interval."""
COVERED = (2.5, 97.5)
"""Percentiles of an interval's ends."""

Times = NDArray[np.float64]
"""Seconds, a row a repeat and a column a step."""
Sums = NDArray[np.float64]
"""Seconds of a whole run, as measured and then with the repeats drawn again."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the interval that resampling gives it."""

    median: float
    low: float
    high: float

    def document(self) -> dict[str, float]:
        """Return the three figures by name."""
        return {"median": self.median, "low": self.low, "high": self.high}


def total_s(times: Times) -> float:
    """Return the sum over steps of their medians over repeats."""
    return float(np.median(times, axis=0).sum())


def kind(event: Event) -> str:
    """Return what a step's time is booked under.

    `drains` are all that a stretch of pipelined steps costs at its ends: its beginning, and the read with nothing
    submitted behind it.
    """
    if event.code == "V":
        return f"verify {event.size + 1}"
    return {"P": "pipelined", "S": "synchronous"}.get(event.code, "drains")


def by_kind(events: Sequence[Event], seconds: Sequence[float]) -> dict[str, tuple[int, float]]:
    """Return how many steps there were of each kind, and what they took together, in the order of a report."""
    found: dict[str, tuple[int, float]] = {}
    for event, spent_s in zip(events, seconds, strict=True):
        count, sum_s = found.get(kind(event), (0, 0.0))
        found[kind(event)] = (count + 1, sum_s + spent_s)
    return dict(sorted(found.items(), key=lambda item: kind_order(item[0])))


def totals(arms: Mapping[str, Times], seed: int = 0) -> dict[str, Sums]:
    """Return every run's total, as measured and then with the repeats drawn again, the same ones for all runs.

    Calls with the same seed and as many repeats draw the same, too.

    Args:
        arms: times by run, equally many repeats each.
        seed: of the draws.
    """
    repeats = min(len(times) for times in arms.values())
    random = np.random.default_rng(seed)
    drawn = random.integers(0, repeats, (RESAMPLES if repeats > 1 else 0, repeats))
    found = {}
    for name, times in arms.items():
        parts = [np.array([total_s(times)])]
        # A few draws at a time, since each is a copy of all the times.
        parts += [np.median(times[rows], axis=1).sum(axis=1) for rows in np.array_split(drawn, len(drawn) // 20 or 1)]
        found[name] = np.concatenate(parts)
    return found


def estimate(figures: NDArray[np.float64]) -> Estimate:
    """Return the first of some figures as measured, and the interval that the others come to."""
    low, high = np.percentile(figures[1:] if len(figures) > 1 else figures, COVERED)
    return Estimate(float(figures[0]), float(low), float(high))


def quotient(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients; nothing over nothing is 1."""
    return np.divide(numerator, denominator, out=np.ones_like(numerator), where=denominator > 0)
