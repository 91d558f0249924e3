"""What came out of serving one trace under one policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import traces
from policies import Policy, Prices
from simulator.errors import SimulationError
from simulator.oracle import Oracle
from simulator.serving.recorded import serve
from simulator.serving.row import Row
from simulator.serving.service import Service
from simulator.serving.tick import Tick

Record = dict[str, Any]

DRAFTER = ("drafted_rounds", "paused_rounds", "proposed", "accepted", "shadow_confirmations")
"""Counters that the drafter keeps: those of asks that were not retracted."""
SUMMED = ("prompt_tokens", "generated", "rounds", *DRAFTER, "drains", "phantom_drains")
"""Fields of a request that the totals are sums of."""


def record(row: Row) -> Record:
    """Return the record of a released request; field names and order are a contract (docs/reference/commands.md)."""
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
    return found | ({"reason": row.job.reason} if row.job.reason else {})


@dataclass(slots=True)
class ServedResult:
    """One policy on one trace."""

    policy: Policy
    trace: str
    """The name of a shipped trace, or the path as typed."""
    header: Mapping[str, Any]
    """What the trace says of itself."""
    service: Service
    ticks: list[Tick] = field(default_factory=list)
    """Every tick; empty unless asked for."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many ticks there were of each kind."""
    _records: dict[str, Record] = field(default_factory=dict)

    def add(self, tick: Tick, *, events: bool = False) -> None:
        """Take in one more tick, and keep it on request."""
        self.kinds[tick.worked.kind] += 1
        # Requests are reported in order of arrival, whatever order they are released in.
        self._records.update((name, {}) for name in tick.arrived)
        self._records.update((row.id, record(row)) for row in tick.released)
        if events:
            self.ticks.append(tick)

    @property
    def records(self) -> list[Record]:
        """One record a request, in order of arrival."""
        return list(self._records.values())

    @property
    def total(self) -> Record:
        """The sums over requests, and the ticks by kind."""
        sums = {name: sum(one[name] for one in self._records.values()) for name in SUMMED}
        return {**sums, "ticks": dict(sorted(self.kinds.items()))}

    def document(self, profile: str, notes: Sequence[str]) -> Record:
        """Return the JSON document; its fields are a contract with other tools (docs/reference/commands.md)."""
        document = {
            "policy": {"name": self.policy.name, "settings": self.policy.settings},
            "profile": profile,
            "trace": self.trace,
            "serve": self.service.settings,
            "requests": self.records,
            "total": self.total,
            "notes": list(notes),
        }
        return document | ({"ticks": [tick.document() for tick in self.ticks]} if self.ticks else {})


def serve_trace(where: str, policy: Policy, prices: Prices, service: Service, *, events: bool) -> ServedResult:
    """Serve every request of a trace under a policy.

    Args:
        where: a shipped trace or a file.
        policy: what to propose and when.
        prices: what a policy may know of the machine.
        service: the server and who uses it.
        events: keep every tick.

    Raises:
        TraceError: the trace cannot be read or is refused.
        SimulationError: a policy that cannot serve, or a prompt that does not fit the server.
    """
    if isinstance(policy, Oracle):
        raise SimulationError("oracle plans one reply at a time and cannot serve")
    with traces.open_trace(where) as reader:
        result = ServedResult(policy, reader.source, reader.header, service)
        for tick in serve(reader, policy, prices, service.server, clients=service.clients):
            result.add(tick, events=events)
    return result
