"""What the studies of a server share: costs with the range of what nobody has published, and rates under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import calibration
from calibration import Costs, ServerCosts
from calibration.server_costs import StorageKind
from calibration.serving import AssumedVerify, ServedForward
from policies import Policy
from policies.plain import Plain
from simulator.oracle import Oracle
from simulator.serving.results import ServedResult
from simulator.serving.serve_trace import serve_in_memory
from simulator.serving.server import Server
from simulator.serving.service import Service
from simulator.simulation import run
from traces import Request, Trace

PROFILE = "gb10-qwen3-1.7b-4bit"
VERIFY = (0.8, 1.2)
"""By how much a verify may differ from what is assumed: the width's forward, which was measured with dense storage and
one request, and what a plain step of the server costs more than one of that measurement."""
TWO_ROWS_S = (0.0096, 0.0144)
"""What a step of two rows may take: as much less than two steps as an 8B model saves, or nothing less."""

Requests = tuple[Request, ...]


@dataclass(frozen=True)
class Assumed:
    """One choice for everything that was never published."""

    verify: float = 1.0
    """Factor of every verify."""
    two_rows_s: float = sum(TWO_ROWS_S) / 2
    """A step of two rows, where the profile has none with a source."""
    profile: str = PROFILE
    storage: StorageKind = "paged"


@cache
def costs_of(assumed: Assumed) -> ServerCosts:
    """Return a profile's server costs with such a choice in place of what the profile assumes."""
    profile = calibration.load(assumed.profile)
    costs = profile.server_costs(profile.costs(), assumed.storage)
    verify = costs.table.verify
    assert isinstance(verify, AssumedVerify)
    steps = tuple(_step(step, assumed.two_rows_s) for step in costs.table.steps)
    return replace(costs, table=replace(costs.table, steps=steps, verify=replace(verify, factor=assumed.verify)))


def _step(step: ServedForward, two_rows_s: float) -> ServedForward:
    if step.size != 2 or step.source:
        return step
    return replace(step, seconds=(two_rows_s,) * len(step.contexts))


ENDS = tuple(Assumed(factor) for factor in VERIFY)
"""Both ends where one row decodes; what lies between them is between their results, for time is linear in the factor
as long as the ticks stay the same."""
CORNERS = tuple(Assumed(factor, seconds) for factor in VERIFY for seconds in TWO_ROWS_S)
"""All ends where two rows do."""


def served(requests: Requests, policy: Policy, assumed: Assumed, clients: int, server: Server) -> ServedResult:
    """Serve requests, each client sending its next one when it has been answered."""
    trace = Trace("requests of a study", {"model": "SmolLM2-135M-Instruct"}, requests)
    return serve_in_memory(trace, policy, costs_of(assumed), Service(server=server, clients=clients))


@cache
def decode_s(requests: Requests, policy: Policy, assumed: Assumed) -> tuple[float, ...]:
    """Return the seconds between first token and end of every request, served one after another.

    The server's warm-up falls into the first one and is taken out: it is paid once in a server's life.
    """
    result = served(requests, policy, assumed, 1, Server(storage=assumed.storage))
    first, *others = [record["decode_s"] for record in result.records]
    return (first - result.warm_up_s, *others)


def gain(requests: Requests, policy: Policy, assumed: Assumed) -> float:
    """Return by how much the decode rate of all requests together differs from plain decoding's."""
    return sum(decode_s(requests, Plain(), assumed)) / sum(decode_s(requests, policy, assumed)) - 1


@cache
def oracle_gain(requests: Requests, assumed: Assumed) -> float:
    """Return what the oracle gains with the costs of a lone row, which knows every reply and plans it as a whole.

    It plans for the loop of one request, which pays a little less for its pipeline than a scheduler does.
    """
    runs = [run(request, Oracle(), lone_row(assumed)) for request in requests]
    return sum(one.plain_decode_s for one in runs) / sum(one.decode_s for one in runs) - 1


@cache
def lone_row(assumed: Assumed) -> Costs:
    """Return the server's costs of one row as those of one request."""
    costs = costs_of(assumed)
    contexts = range(1, 2049)
    device = {width: [costs.verify_s(width, context) for context in contexts] for width in range(2, 9)}
    device[1] = [costs.step_s(1, context) for context in contexts]
    return replace(costs.costs, contexts=contexts, measured_at=(), device=device)


@cache
def span_s(requests: Requests, policy: Policy, assumed: Assumed, clients: int, server: Server) -> float:
    """Return the seconds from the first arrival to the last release, without the warm-up."""
    result = served(requests, policy, assumed, clients, server)
    assert result.timeline is not None
    return result.timeline.span_s - result.warm_up_s


def shared_gain(requests: Requests, policy: Policy, assumed: Assumed, clients: int, server: Server) -> float:
    """Return by how much the tokens/s of several clients together differ from plain serving's."""
    plain_s = span_s(requests, Plain(), assumed, clients, server)
    return plain_s / span_s(requests, policy, assumed, clients, server) - 1


def percent(share: float) -> str:
    """Return a share of 1 as a signed percentage with one decimal."""
    return f"{share * 100:+.1f} %"


def span(shares: Sequence[float]) -> str:
    """Return the smallest and the largest of some shares."""
    return f"{percent(min(shares))} to {percent(max(shares))}"
