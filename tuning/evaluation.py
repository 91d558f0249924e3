"""How fast requests are under a policy, on several machines at once.

What a trial pays for is kept to what it changes: match tables depend on the lookup settings only, and one schedule is
priced on every machine unless the policy looked at its prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from calibration import Costs, ProfileError
from policies import LookupPolicy, Policy, Prices
from simulator.oracle import Oracle, best_schedule
from simulator.recorded import Recording
from simulator.run import ratio
from simulator.schedule import Schedule
from simulator.simulation import PLAIN
from simulator.two_clocks import TwoClocks
from traces import Request

Speedups: TypeAlias = tuple[tuple[float, ...], ...]
"""How many times as fast as plain decoding: a row a machine, in it a figure a request."""

KEPT_LOOKUPS = 16
"""Lookup settings whose match tables are kept; a table of 300 tokens takes some 30 kB."""


class Evaluator(Protocol):
    """Says how fast some requests are under a policy."""

    def speedups(self, policy: Policy) -> Speedups:
        """Return the speedups.

        Raises:
            ProfileError: a forward that a profile has no cost of.
        """


@dataclass(frozen=True)
class Watched:
    """Prices that notice whether anybody looks at them."""

    prices: Prices
    looks: list[str] = field(default_factory=list)
    """The names of what was asked."""

    def step_s(self, context: int) -> float:
        """Return the seconds of a pipelined step."""
        self.looks.append("step_s")
        return self.prices.step_s(context)

    def sync_s(self, width: int, context: int) -> float:
        """Return the seconds of a synchronous forward."""
        self.looks.append("sync_s")
        return self.prices.sync_s(width, context)

    def overlap_s(self, context: int) -> float:
        """Return the seconds of a lost overlap."""
        self.looks.append("overlap_s")
        return self.prices.overlap_s(context)

    def among(self, rows: int) -> Watched:
        """Return the prices for one of so many requests, watched as well."""
        return Watched(self.prices.among(rows), self.looks)


class Alone:
    """Requests decoded one at a time."""

    def __init__(self, requests: Sequence[Request], costs: Sequence[Costs], most_draft: int) -> None:
        """Prepare to decode.

        Args:
            requests: what was said.
            costs: one a machine.
            most_draft: the largest `max_draft` that will be asked for, for which tables are made at once.
        """
        self.requests = tuple(requests)
        self._clocks = [TwoClocks(one) for one in costs]
        self._most_draft = most_draft
        self._recordings: dict[tuple[int, int, str] | None, list[Recording]] = {}
        self._prefill_s = [[one.prefill_s(len(request.prompt)) for request in requests] for one in costs]
        plain = [recording.schedule(PLAIN, costs[0]) for recording in self._recorded(PLAIN)]
        self._plain_s = [
            [
                prefill_s + clocks.decode_s(schedule.events, len(request.prompt))
                for request, schedule, prefill_s in zip(self.requests, plain, prefills_s, strict=True)
            ]
            for clocks, prefills_s in zip(self._clocks, self._prefill_s, strict=True)
        ]

    def speedups(self, policy: Policy) -> Speedups:
        """Return the speedups.

        Raises:
            ProfileError: a forward that a profile has no cost of.
        """
        schedules: list[list[Schedule]] = []
        recordings = self._recorded(policy)
        watched = Watched(self._clocks[0].costs)
        for clocks in self._clocks:
            if isinstance(policy, Oracle):
                schedules.append([best_schedule(one, policy, clocks) for one in recordings])
            elif not schedules:
                schedules.append([one.schedule(policy, watched) for one in recordings])
            elif watched.looks:
                schedules.append([one.schedule(policy, clocks.costs) for one in recordings])
            else:
                schedules.append(schedules[0])
        return tuple(self._priced(policy, machine, found) for machine, found in enumerate(schedules))

    def _priced(self, policy: Policy, machine: int, schedules: Sequence[Schedule]) -> tuple[float, ...]:
        clocks = self._clocks[machine]
        found = []
        for place, (request, schedule) in enumerate(zip(self.requests, schedules, strict=True)):
            try:
                decode_s = clocks.decode_s(schedule.events, len(request.prompt))
            except ProfileError as error:
                raise ProfileError(f"request {request.id!r} under {policy}: {error}") from None
            speedup = ratio(self._plain_s[machine][place], self._prefill_s[machine][place] + decode_s)
            assert speedup is not None, "plain decoding takes no time only where every policy does"
            found.append(speedup)
        return tuple(found)

    def _recorded(self, policy: Policy) -> list[Recording]:
        """Return the requests with the match tables of the policy's lookup; the least recently made go first."""
        key = (policy.ngram_max, policy.ngram_min, policy.match) if isinstance(policy, LookupPolicy) else None
        found = self._recordings.get(key)
        if found is None:
            if len(self._recordings) >= KEPT_LOOKUPS:
                del self._recordings[next(iter(self._recordings))]
            found = self._recordings[key] = [Recording(request) for request in self.requests]
            if isinstance(policy, LookupPolicy):
                widest = replace(policy, max_draft=max(policy.max_draft, self._most_draft))
                for recording in found:
                    recording.lookup(widest)
        return found
