"""A server and who uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulator.errors import SimulationError
from simulator.serving.server import Server


@dataclass(frozen=True, kw_only=True)
class Service:
    """A server and who uses it.

    Raises:
        SimulationError: no clients.
    """

    server: Server
    clients: int | None = None
    """Clients that each send a request as soon as an earlier one is released; None sends all at once."""

    def __post_init__(self) -> None:
        if self.clients is not None and self.clients < 1:
            raise SimulationError(f"concurrency must be at least 1 (got {self.clients})")

    @property
    def settings(self) -> dict[str, Any]:
        """Every effective setting by name."""
        return {**self.server.settings, "clients": self.clients}

    def __str__(self) -> str:
        """Say in a line what the server does."""
        server = self.server
        rows = f"{server.max_batch} row{'s' * (server.max_batch > 1)}"
        drafts = f"proposals in batches of up to {rows}"
        parts = [
            f"{server.parallel} slot{'s' * (server.parallel > 1)}",
            f"{drafts} and contexts of up to {server.paged_limit} tokens" if server.paged else drafts,
            "paged" if server.paged else "dense",
        ]
        if server.max_kv_size is not None:
            parts.append(f"at most {server.max_kv_size} positions a row")
        if not server.pipelined or server.max_kv_size is not None:
            parts.append("nothing in flight")
        if self.clients is not None:
            parts.append(f"{self.clients} client{'s' * (self.clients > 1)}")
        return ", ".join(parts)
