"""What a search maximises and what it may not do.

A category's speedup is the geometric mean over its requests, a machine's the weighted one over categories, and of
several machines the worst counts. Two rules are constraints: no request of free prose below a floor, and no copying
category below a share of what the shipped rules gain in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traces import Request
from tuning.errors import TuningError
from tuning.evaluation import Speedups
from tuning.kinds import category, copies, is_prose

TOLERANCE = 1e-9
"""Speedups that differ by no more are the same: the times of equal forwards, added up in another order."""


@dataclass(frozen=True)
class Rules:
    """What counts how much, and what may not be lost.

    Raises:
        TuningError: a share or weight that is none.
    """

    floor: float = 0.99
    """Speedup below which no request of free prose may fall."""
    keep: float = 0.95
    """Share of what the shipped rules gain in a copying category that has to be kept."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of categories; 1 for the others."""

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise TuningError(f"keep must be between 0 and 1 (got {self.keep:g})")
        if not 0 <= self.floor < math.inf:
            raise TuningError(f"floor must be at least 0 (got {self.floor:g})")
        for name, weight in self.weights.items():
            if not 0 < weight < math.inf:
                raise TuningError(f"weight of {name!r} must be above 0 (got {weight:g})")


@dataclass(frozen=True)
class Score:
    """What a policy reaches on some requests."""

    speedup: float
    """The objective."""
    copying: float
    """The same over copying categories only; 1 without any."""
    prose: float
    """The slowest request of free prose; 1 without any."""
    violations: Mapping[str, float]
    """By how much each rule is broken, in speedup; 0 or less where it holds."""

    @property
    def feasible(self) -> bool:
        """Whether every rule holds."""
        return self.violation == 0

    @property
    def broken(self) -> str:
        """The rules that are broken, and by how much, in words; empty where all hold."""
        return " and ".join(f"{name} by {amount:.3f}" for name, amount in self.violations.items() if amount > 0)

    @property
    def violation(self) -> float:
        """How much is broken together."""
        return sum(max(0.0, one) for one in self.violations.values())


class Judge:
    """Scores speedups of the same requests, against the shipped rules."""

    def __init__(self, requests: Sequence[Request], rules: Rules, shipped: Speedups) -> None:
        """Take the requests in the order of the speedups.

        Args:
            requests: what was said.
            rules: what counts.
            shipped: the speedups under the policy's shipped constants.
        """
        self.rules = rules
        self.shipped = shipped
        self.categories: dict[str, list[int]] = {}
        for place, request in enumerate(requests):
            self.categories.setdefault(category(request), []).append(place)
        self.prose = [place for place, request in enumerate(requests) if is_prose(request)]
        self._copying = {name: places for name, places in self.categories.items() if copies(name)}

    def score(self, speedups: Speedups) -> Score:
        """Return what speedups are worth."""
        rows = range(len(speedups))
        prose = min((speedups[row][place] for row in rows for place in self.prose), default=1.0)
        lost = max(
            (
                self._owed(self.shipped[row], places) - mean(speedups[row], places)
                for row in rows
                for places in self._copying.values()
            ),
            default=0.0,
        )
        floor = self.rules.floor - prose if self.prose else 0.0
        return Score(
            speedup=min(self.machine(speedups[row]) for row in rows),
            copying=min(self._mean(speedups[row], self._copying) for row in rows),
            prose=prose,
            violations={"prose": _noticed(floor), "copying": _noticed(lost)},
        )

    def machine(self, row: Sequence[float]) -> float:
        """Return the objective on one machine."""
        return self._mean(row, self.categories)

    def weights(self) -> list[float]:
        """Return the weight of every request: its category's, shared among the requests of it."""
        count = sum(len(places) for places in self.categories.values())
        found = [0.0] * count
        for name, places in self.categories.items():
            for place in places:
                found[place] = self.rules.weights.get(name, 1.0) / len(places)
        return found

    def _mean(self, row: Sequence[float], categories: Mapping[str, Sequence[int]]) -> float:
        if not categories:
            return 1.0
        weights = [self.rules.weights.get(name, 1.0) for name in categories]
        logs = [math.log(mean(row, places)) for places in categories.values()]
        return math.exp(sum(weight * log for weight, log in zip(weights, logs, strict=True)) / sum(weights))

    def _owed(self, shipped: Sequence[float], places: Sequence[int]) -> float:
        """Return what a copying category has to reach; nothing where the shipped rules gain nothing."""
        gained = mean(shipped, places) - 1
        return 1 + self.rules.keep * gained if gained > 0 else 0.0


def _noticed(amount: float) -> float:
    """Return by how much a rule is broken, 0 where rounding alone may say so."""
    return 0.0 if abs(amount) < TOLERANCE else amount


def mean(row: Sequence[float], places: Sequence[int]) -> float:
    """Return the geometric mean of some of the figures.

    >>> round(mean([1.0, 4.0, 9.0], [1, 2]), 6)
    6.0
    """
    return math.exp(math.fsum(math.log(row[place]) for place in places) / len(places))
