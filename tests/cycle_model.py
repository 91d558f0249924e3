"""The reference's cycle model on a checked server: every token is the last one plus 1, modulo 16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.serving.tick import Tick
from tests.checked_server import CheckedServer
from traces import Request

COPY = [*range(16), *range(4)]
PLAIN = [0, 2, 4, 6, 8]
LATE_COPY = [12, 13, 14, 15, 0, 2, 4, 6, 8]
"""What it says is found in the prompt from its fifth token on."""


def cycle(name: str, prompt: Sequence[int], tokens: int, *, eligible: bool = True, pipelinable: bool = True) -> Request:
    """Return a request that says so many tokens, each the last one plus 1, modulo 16."""
    reply = [(prompt[-1] + 1 + place) % 16 for place in range(tokens)]
    return Request.of(id=name, prompt=prompt, reply=reply, finish="length", eligible=eligible, pipelinable=pipelinable)


def kinds(ticks: Sequence[Tick]) -> str:
    """Return what the ticks were, with a `*` where a step is in flight at the end of one."""
    return " ".join(tick.worked.kind + "*" * tick.primed for tick in ticks)


def admitted(server: CheckedServer, *requests: Request) -> Tick:
    """Tick until all the requests decode, and return the last of these ticks."""
    tick = server.tick(*requests)
    while tick and {request.id for request in requests} - {row.id for row in server.scheduler.rows}:
        tick = server.tick()
    assert tick is not None
    return tick


def ticked(server: CheckedServer, *arrived: Request, **happened: Sequence[str]) -> Tick:
    """Run a tick that does something."""
    tick = server.tick(*arrived, **happened)
    assert tick is not None
    return tick


def pipelined(*requests: Request, policy: str = "gated", **options: Any) -> CheckedServer:
    """Return a server whose rows have a step in flight."""
    server = CheckedServer(policy, **options)
    tick = admitted(server, *requests)
    while not tick.primed:
        tick = ticked(server)
    return server
