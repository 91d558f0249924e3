"""A server and who uses it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simulator.errors import SimulationError
from simulator.serving.arrivals import AT_ONCE, Arrivals
from simulator.serving.server import Server


@dataclass(frozen=True, kw_only=True)
class Service:
    """A server and who uses it.

    Raises:
        SimulationError: no clients, no room in the queue, or two ways to arrive.
    """

    server: Server
    clients: int | None = None
    """Clients that each send a request as soon as an earlier one is released; None leaves it to `arrivals`."""
    arrivals: Arrivals = AT_ONCE
    """When requests come."""
    queue_limit: int | None = None
    """Requests that may wait; further ones are refused. None takes any number."""
    seed: int = 0
    """Of what is random in the arrivals."""

    def __post_init__(self) -> None:
        if self.clients is not None and self.clients < 1:
            raise SimulationError(f"concurrency must be at least 1 (got {self.clients})")
        if self.queue_limit is not None and self.queue_limit < 1:
            raise SimulationError(f"queue_limit must be at least 1 (got {self.queue_limit})")
        if self.clients is not None and self.queue_limit is not None:
            raise SimulationError("queue_limit: clients wait for their answers, so none of theirs is refused")
        if self.clients is not None and self.arrivals.open:
            raise SimulationError(
                f"concurrency: clients send when they are answered, and not by arrivals (got {self.arrivals.text!r})"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """Every effective setting by name."""
        return {**self.server.settings, "clients": self.clients, **self._arriving}

    def pipelined(self) -> Service:
        """Return the same service with a server that may pipeline."""
        return replace(self, server=replace(self.server, pipelined=True))

    @property
    def needs_clock(self) -> bool:
        """Whether the ticks depend on how long they take."""
        return self.arrivals.open or self.queue_limit is not None

    @property
    def _arriving(self) -> dict[str, Any]:
        return {"arrivals": self.arrivals.text, "queue_limit": self.queue_limit, "seed": self.seed}

    def __str__(self) -> str:
        """Say in a line what the server does."""
        server = self.server
        rows = f"{server.max_batch} row{'s' * (server.max_batch > 1)}"
        drafts = f"proposals in batches of up to {rows}"
        parts = [
            f"{server.parallel} slot{'s' * (server.parallel > 1)}",
            f"{drafts} and contexts of up to {server.paged_limit} tokens" if server.paged else drafts,
            server.kv_storage,
        ]
        if server.max_kv_size is not None:
            parts.append(f"at most {server.max_kv_size} positions a row")
        if not server.pipelined or server.max_kv_size is not None:
            parts.append("nothing in flight")
        if self.clients is not None:
            parts.append(f"{self.clients} client{'s' * (self.clients > 1)}")
        else:
            parts.append(f"arrivals {self.arrivals.text}")
        if self.queue_limit is not None:
            parts.append(f"at most {self.queue_limit} waiting")
        return ", ".join(parts)
