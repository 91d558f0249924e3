"""What came out of serving one trace under one policy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean
from typing import Any

from policies import Policy
from simulator.serving.row import Row
from simulator.serving.service import Service
from simulator.serving.tick import Tick
from simulator.serving.timeline import Timeline

Record = dict[str, Any]

DRAFTER = ("drafted_rounds", "paused_rounds", "proposed", "accepted", "shadow_confirmations")
"""Counters that the drafter keeps: those of asks that were not retracted."""
SUMMED = ("prompt_tokens", "generated", "rounds", *DRAFTER, "drains", "phantom_drains")
"""Fields of a request that the totals are sums of."""


@dataclass(slots=True)
class ServedResult:
    """One policy on one trace."""

    policy: Policy
    trace: str
    """The name of a shipped trace, or the path as typed."""
    header: Mapping[str, Any]
    """What the trace says of itself."""
    service: Service
    timeline: Timeline | None = None
    """When it all happened; None when no clock ran."""
    untimed: str | None = None
    """Why none did."""
    ticks: list[Tick] = field(default_factory=list)
    """Every tick; empty unless asked for."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many ticks there were of each kind."""
    primed: int = 0
    """Decode ticks that ended with a step in flight."""
    verifies: int = 0
    """Verify rounds."""
    false_switches: int = 0
    """Switch ticks after which nobody had anything to propose."""
    crowded: int = 0
    """Decode ticks in which nobody was asked because too many rows decoded."""
    warm_up_s: float = 0.0
    """Seconds spent on the first verify of every width."""
    wasted: int = 0
    """Forwards whose results were thrown away."""
    plain: ServedResult | None = None
    """The same requests served without prompt lookup: this one, where it is; None where nothing was run beside it."""
    _records: dict[str, Record] = field(default_factory=dict)
    _switched: bool = False
    """Whether the last decode tick was a switch."""

    def add(self, tick: Tick, at_s: float = 0.0, *, events: bool = False) -> None:
        """Take in one more tick, which ended at `at_s` on the clock, and keep it on request."""
        kind = tick.worked.kind
        self.kinds[kind] += 1
        if kind != "prefill":
            self.primed += tick.primed
            self.verifies += len(tick.worked.verify)
            self.crowded += len(tick.worked.rows) > self.service.server.max_batch
            self.false_switches += self._switched and kind != "verify"
            self._switched = kind == "switch"
        # Requests are reported in order of arrival, whatever order they are released in.
        if tick.arrived:
            self._records.update((name, {}) for name in tick.arrived)
        for row in tick.released:
            self._records[row.id] = self._record(row, at_s)
        if events:
            self.ticks.append(tick)

    @property
    def decode_ticks(self) -> int:
        """Ticks that decoded."""
        return self.kinds.total() - self.kinds["prefill"]

    @property
    def records(self) -> list[Record]:
        """One record a request, in order of arrival."""
        if self.plain is None:
            return list(self._records.values())
        plain = self.plain._records
        return [one | _beside(one, plain.get(name)) for name, one in self._records.items()]

    @property
    def total(self) -> Record:
        """The sums over requests, the ticks by kind, and what the clock says of the whole run."""
        sums = {name: sum(one[name] for one in self._records.values()) for name in SUMMED}
        found: Record = {**sums, "ticks": dict(sorted(self.kinds.items()))}
        if self.timeline is None:
            return found
        ticks, drafted = self.decode_ticks, sums["drafted_rounds"]
        found |= {
            "lookahead_share": self.primed / ticks if ticks else None,
            "switch_ticks": self.kinds["switch"],
            "false_switches": self.false_switches,
            "wasted_forwards": self.wasted,
            "verify_rounds_per_tick": self.verifies / ticks if ticks else None,
            "accepted_per_verify": sums["accepted"] / drafted if drafted else None,
            "warm_up_s": self.warm_up_s,
            **self.timeline.document(),
            "saturated": self.saturated,
        }
        if self.plain is None or self.plain.timeline is None:
            return found
        if self.plain is not self:
            found["plain"] = self.plain.timeline.document()
        return found | self._sums | {"decode_speedup": self.decode_speedup, "speedup": self.speedup}

    @property
    def _sums(self) -> Record:
        """The sums of the requests' times, which overlap, and the mean of their speedups; None of other requests."""
        records = self.records
        own = {name: math.fsum(one[name] or 0.0 for one in records) for name in ("prefill_s", "total_s")}
        names = ("plain_decode_s", "plain_total_s")
        plain = {name: None if self.unlike else math.fsum(one[name] for one in records) for name in names}
        speedups = [one["speedup"] for one in records if one["speedup"]]
        return own | plain | {"geomean_speedup": geometric_mean(speedups) if speedups else None}

    @property
    def unlike(self) -> str | None:
        """Say that plain serving refused other requests, and what is compared then."""
        if self.timeline is None or self.plain is None or self.plain.timeline is None:
            return None
        mine, plain = self.timeline.rejected, self.plain.timeline.rejected
        if set(mine) == set(plain):
            return None
        return (
            f"{self.policy} refused {len(mine)} request{'s' * (len(mine) != 1)} and plain serving {len(plain)}, "
            f"not the same ones: only the {len(self._served_by_both)} that both served are compared"
        )

    @property
    def _served_by_both(self) -> list[str]:
        return [name for name in self._records if self.plain is not None and name in self.plain._records]

    @property
    def saturated(self) -> str | None:
        """Say that requests came faster than they could be served, and what shows it."""
        line, parallel = self.timeline, self.service.server.parallel
        if line is None or not self.service.arrivals.open:
            return None
        if not line.rejected and line.waiting_at_last <= parallel:
            return None
        came_s = line.last_arrival_s - line.first_arrival_s
        came = f"{line.arrivals / came_s:.3g}/s" if came_s else "at once"
        left = f"{(line.arrivals - len(line.rejected)) / line.span_s:.3g}/s" if line.span_s else "at once"
        refused = f", {len(line.rejected)} were refused" if line.rejected else ""
        return f"{line.waiting_at_last} waited when the last request came{refused}: they came {came} and left {left}"

    @property
    def decode_speedup(self) -> float | None:
        """Seconds from the first token to the end, summed over requests that both served: plain's over this one's."""
        names = self._served_by_both
        if self.plain is None or self.timeline is None or not names:
            return None
        plain_s, own_s = (sum(run._records[name]["decode_s"] for name in names) for run in (self.plain, self))
        return _ratio(plain_s, own_s)

    @property
    def speedup(self) -> float | None:
        """Seconds from the first arrival to the last release: plain's over this one's; None if they served others."""
        if self.timeline is None or self.plain is None or self.plain.timeline is None or self.unlike:
            return None
        return _ratio(self.plain.timeline.span_s, self.timeline.span_s)

    def document(self, profile: str, notes: Sequence[str]) -> Record:
        """Return the JSON document; its fields are a contract with other tools (docs/reference/commands.md)."""
        document = {
            "policy": {"name": self.policy.name, "settings": self.policy.settings},
            "profile": profile,
            "trace": self.trace,
            "serve": self.service.settings,
            "requests": self.records,
            "rejected": self.timeline.rejected if self.timeline else [],
            "total": self.total,
            "notes": [
                *notes,
                *([f"not timed: {self.untimed}"] if self.untimed else []),
                *([self.unlike] if self.unlike else []),
            ],
        }
        return document | ({"ticks": [tick.document() for tick in self.ticks]} if self.ticks else {})

    def _record(self, row: Row, at_s: float) -> Record:
        """Return the record of a released request; field names and order are a contract."""
        found = {
            "id": row.id,
            "prompt_tokens": row.job.prompt_tokens,
            "generated": row.generated,
            "rounds": row.rounds,
            **{name: getattr(row.drafter, name) if row.drafter else 0 for name in DRAFTER},
            "drains": row.drains,
            "phantom_drains": row.phantom_drains,
            "finish": row.end,
        }
        if self.timeline is not None:
            found |= self.timeline.released(row.id, at_s).document()
        return found | ({"reason": row.job.reason} if row.job.reason else {})


def _beside(one: Record, plain: Record | None) -> Record:
    """Return what a record says of the same request without prompt lookup, if that was served."""
    return {
        "plain_ttft_s": plain and plain["ttft_s"],
        "plain_decode_s": plain and plain["decode_s"],
        "plain_total_s": plain and plain["total_s"],
        "plain_tokens_per_s": plain and plain["tokens_per_s"],
        "speedup": plain and _ratio(plain["total_s"], one["total_s"]),
        "decode_speedup": plain and _ratio(plain["decode_s"], one["decode_s"]),
    }


def _ratio(numerator: float, denominator: float) -> float | None:
    """Divide two times; nothing over nothing is the same, and something over nothing is no ratio."""
    if denominator:
        return numerator / denominator
    return None if numerator else 1.0
