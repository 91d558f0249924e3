"""Serving the requests of one trace under several policies, on a clock where the profile has what that needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import traces
from calibration import ProfileError, RowPrices, ServerCosts
from policies import Policy, Prices
from policies.plain import Plain
from simulator.errors import SimulationError
from simulator.oracle import Oracle
from simulator.serving.recorded import serve
from simulator.serving.results import ServedResult
from simulator.serving.service import Service
from simulator.serving.simpy_server import SimpyServer
from traces import Request, Trace

PLAIN = Plain()


def serve_trace(
    where: str, policies: Sequence[Policy], costs: ServerCosts, service: Service, *, events: bool
) -> list[ServedResult]:
    """Serve every request of a trace under each policy, with plain decoding beside it.

    Ticks that do not depend on how long they take are a schedule, which needs no prices: with `events` it is made
    without a clock where the profile lacks a cost.

    Args:
        where: a shipped trace or a file.
        policies: what to propose and when.
        costs: what forwards cost.
        service: the server and who uses it.
        events: keep every tick.

    Raises:
        TraceError: the trace cannot be read or is refused.
        SimulationError: a policy that cannot serve, or requests that the service cannot take.
        ProfileError: a forward that the profile has no cost of.
    """
    for policy in policies:
        if isinstance(policy, Oracle):
            raise SimulationError("--policy oracle: plans one reply at a time, so it cannot serve")
    if not traces.find(where).is_file():
        raise SimulationError(f"{where}: must be a file, to be read once for every policy (got a pipe or a device)")
    try:
        try:
            return _priced(where, policies, costs, service, events=events)
        except ProfileError as error:
            if not events or service.needs_clock:
                raise
            return _scheduled(where, policies, RowPrices(costs), service, str(error))
    except SimulationError as error:
        raise SimulationError(f"{where}: {error}") from None


def _priced(
    where: str, policies: Sequence[Policy], costs: ServerCosts, service: Service, *, events: bool
) -> list[ServedResult]:
    plain: ServedResult | None = None
    results = []
    for policy in policies:
        result = _timed(where, policy, costs, service, events=events)
        if policy != PLAIN or not service.server.pipelined:
            plain = plain or _timed(where, PLAIN, costs, service.pipelined(), events=False)
        result.plain = plain if policy != PLAIN or not service.server.pipelined else result
        results.append(result)
    return results


def _scheduled(
    where: str, policies: Sequence[Policy], prices: Prices, service: Service, reason: str
) -> list[ServedResult]:
    results = []
    for policy in policies:
        with traces.open_trace(where) as reader:
            result = ServedResult(policy, reader.source, reader.header, service, untimed=reason)
            for tick in serve(reader, policy, prices, service.server, clients=service.clients):
                result.add(tick, events=True)
        results.append(result)
    return results


def serve_in_memory(trace: Trace, policy: Policy, costs: ServerCosts, service: Service) -> ServedResult:
    """Serve every request of a trace in memory under one policy, with nothing beside it.

    Args:
        trace: what was said.
        policy: what to propose and when.
        costs: what forwards cost.
        service: the server and who uses it.

    Raises:
        SimulationError: requests that the service cannot take.
        ProfileError: a forward that the profile has no cost of.
    """
    result = ServedResult(policy, trace.source, trace.header, service)
    _run(result, iter(trace.requests), costs, events=False)
    return result


def _timed(where: str, policy: Policy, costs: ServerCosts, service: Service, *, events: bool) -> ServedResult:
    with traces.open_trace(where) as reader:
        result = ServedResult(policy, reader.source, reader.header, service)
        _run(result, iter(reader), costs, events=events)
    return result


def _run(result: ServedResult, requests: Iterator[Request], costs: ServerCosts, *, events: bool) -> None:
    policy, service = result.policy, result.service
    server = SimpyServer(policy, costs, service, lambda tick, at_s: result.add(tick, at_s, events=events))
    result.timeline = server.timeline
    server.run(requests)
    result.warm_up_s, result.wasted = server.host.warm_up_s, server.host.wasted
