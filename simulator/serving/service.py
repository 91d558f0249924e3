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
