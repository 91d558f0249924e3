"""When requests arrive: all at once, at random, at a fixed rate, or as they were recorded."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Literal

from simulator.errors import SimulationError
from traces import Request

Kind = Literal["now", "recorded", "rate", "poisson", "gamma"]

BOUNDS = (1e-9, 1e9)
"""Smallest and largest rate and shape: beyond, a gap between two requests is no number any more."""

FORMS = "now, recorded, rate:RATE/s, poisson:RATE/s, gamma:RATE/s,SHAPE"


@dataclass(frozen=True)
class Arrivals:
    """A process of arrivals; the first request arrives when the clock starts, unless they are as recorded."""

    kind: Kind = "now"
    rate: float = math.inf
    """Requests a second on average, where the kind has a rate."""
    shape: float = 1.0
    """Of the gamma distribution of the gaps: 1 is Poisson, less comes in bursts, more is more even."""
    text: str = "now"
    """As typed."""

    @property
    def open(self) -> bool:
        """Whether requests come over time, whatever the server does."""
        return self.kind != "now"

    def at(self, requests: Iterable[Request], seed: int) -> Iterator[tuple[float, Request]]:
        """Yield every request with the seconds at which it arrives; the same seed gives the same seconds.

        Raises:
            SimulationError: a recorded arrival that is missing or before the one ahead.
        """
        return _recorded(requests) if self.kind == "recorded" else self._generated(requests, seed)

    def _generated(self, requests: Iterable[Request], seed: int) -> Iterator[tuple[float, Request]]:
        at_s, gaps = 0.0, self._gaps(random.Random(seed))
        for request in requests:
            yield at_s, request
            at_s += next(gaps)

    def _gaps(self, source: random.Random) -> Iterator[float]:
        match self.kind:
            case "poisson":
                return _endless(lambda: source.expovariate(self.rate))
            case "gamma":
                return _endless(lambda: source.gammavariate(self.shape, 1 / (self.rate * self.shape)))
        return repeat(1 / self.rate)


AT_ONCE = Arrivals()
"""Every request is there when the clock starts."""


def arrivals(text: str) -> Arrivals:
    """Read a process of arrivals from a command line.

    >>> arrivals("gamma:2.5/s,0.5")
    Arrivals(kind='gamma', rate=2.5, shape=0.5, text='gamma:2.5/s,0.5')

    Raises:
        SimulationError: none of the forms there are, or a rate or shape beyond `BOUNDS`.
    """
    kind, _, numbers = text.partition(":")
    rate, comma, shape = numbers.partition(",")
    per_second = rate.removesuffix("/s")
    match kind:
        case "now" | "recorded" if text == kind:
            return Arrivals(kind, text=text)
        case "rate" | "poisson" if per_second != rate and not comma:
            return Arrivals(kind, _bounded(per_second, text, "the rate"), text=text)
        case "gamma" if per_second != rate and comma:
            return Arrivals(kind, _bounded(per_second, text, "the rate"), _bounded(shape, text, "the shape"), text)
    raise SimulationError(f"arrivals: no such process {text!r} (have: {FORMS})")


def _bounded(digits: str, text: str, what: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    lowest, highest = BOUNDS
    if not lowest <= value <= highest:
        raise SimulationError(
            f"arrivals: {what} of {text!r} must be a number from {lowest:g} to {highest:g} (got {digits!r})"
        )
    return value


def _endless(draw: Callable[[], float]) -> Iterator[float]:
    while True:
        yield draw()


def _recorded(requests: Iterable[Request]) -> Iterator[tuple[float, Request]]:
    before_s = 0.0
    for request in requests:
        if request.arrival_s is None:
            raise SimulationError(f"request {request.id!r}: has no arrival_s, so it cannot arrive as recorded")
        if request.arrival_s < before_s:
            raise SimulationError(
                f"request {request.id!r}: arrives at {request.arrival_s:g} s, before the request ahead of it "
                f"({before_s:g} s)"
            )
        before_s = request.arrival_s
        yield before_s, request
