"""The server on a clock: one row costs what one request costs, and a clock changes no tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from calibration import Costs, RowPrices, ServerCosts
from calibration.prefill import Prefill
from calibration.serving import ServedForward, StorageTable
from policies import Policy
from simulator import run
from simulator.schedule import Event, read_codes
from simulator.serving.arrivals import arrivals
from simulator.serving.recorded import serve
from simulator.serving.server import Server
from simulator.serving.service import Service
from simulator.serving.simpy_server import SimpyServer
from simulator.serving.tick import Tick
from simulator.two_clocks import TwoClocks
from tests import strategies
from traces import Request

STEP_S, HOST_S = 0.010, 0.002
"""A device-bound machine: e = 0.2 pipelined steps of overlap to lose."""


def machine(rows: int = 1) -> ServerCosts:
    """A step of n rows takes n steps of one; a verify of width w takes 1 + (w - 1) / 4 of them."""
    device = {width: STEP_S * (1 + 0.25 * (width - 1)) for width in range(1, 17)}
    costs = Costs("m", range(1, 3000), device, read_s=HOST_S)
    steps = [ServedForward(n, (1,), (1, 2999), (STEP_S * n,), assumed="a test") for n in range(1, rows + 1)]
    return ServerCosts(costs, "dense", StorageTable(steps=tuple(steps)))


def clocked(
    requests: Sequence[Request], policy: Policy, costs: ServerCosts, service: Service
) -> tuple[SimpyServer, list[Tick]]:
    ticks: list[Tick] = []

    def seen(tick: Tick, at_s: float) -> None:
        ticks.append(tick)
        for row in tick.released:
            server.timeline.released(row.id, at_s)

    server = SimpyServer(policy, costs, service, seen)
    server.run(iter(requests))
    return server, ticks


def alone(*, pipelined: bool = True) -> Service:
    return Service(server=Server(parallel=1, pipelined=pipelined))


def prose(name: str, tokens: int, arrival_s: float | None = None) -> Request:
    return Request.of(id=name, prompt=[1], reply=[*range(10, 10 + tokens)], finish="length", arrival_s=arrival_s)


@settings(deadline=None)
@given(strategies.requests(), strategies.any_policies(), strategies.machines())
def test_without_a_pipeline_one_row_costs_what_one_request_does(request: Request, policy: Policy, costs: Costs) -> None:
    server, _ = clocked([request], policy, ServerCosts(costs), alone(pipelined=False))

    expected = run(request, policy, costs, sync=True)
    assert server.timeline.decode_s == pytest.approx(expected.decode_s + server.host.warm_up_s, rel=1e-9, abs=1e-12)
    assert list(server.timeline.ttft_s) == [pytest.approx(expected.prefill_s)]


@settings(deadline=None)
@given(strategies.requests(), st.sampled_from(["plain", "fixed"]))
def test_with_a_pipeline_one_row_costs_more_by_the_listed_differences(request: Request, name: str) -> None:
    policy, costs = policies.load(name), machine()

    server, ticks = clocked([request], policy, costs, alone())

    # A stretch begins with a synchronous step and loses its overlap; a reply that ends in flight costs two steps more.
    alone_s = run(request, policy, costs.costs)
    stretches = sum(reads > 1 for reads in stretch_reads(alone_s.schedule.events))
    ended_in_flight = sum(tick.unwound == 2 for tick in ticks)
    more_s = stretches * HOST_S + ended_in_flight * 2 * STEP_S + server.host.warm_up_s
    assert server.timeline.decode_s == pytest.approx(alone_s.decode_s + more_s)


@settings(deadline=None)
@given(strategies.machines(), st.integers(1, 30), st.integers(4, 40))
def test_a_pipelined_stretch_runs_on_the_two_clocks_of_one_request(costs: Costs, prompt: int, tokens: int) -> None:
    request = Request.of(id="r", prompt=[1] * prompt, reply=[*range(tokens)], finish="length")
    passed_s: list[tuple[str, float]] = []

    SimpyServer(
        policies.load("plain"),
        ServerCosts(costs),
        alone(),
        lambda tick, at_s: passed_s.append((tick.worked.kind, at_s)),
    ).run(iter([request]))

    # One synchronous step that begins the stretch, and all but the last token in it.
    steady = [at_s for kind, at_s in passed_s if kind == "steady"]
    expected_s = TwoClocks(costs).passed_s(read_codes("S B" + " P" * (tokens - 3)), prompt)[-1]
    assert len(steady) == tokens - 3
    assert steady[-1] == pytest.approx(costs.prefill_s(prompt) + expected_s)


def stretch_reads(events: Sequence[Event]) -> list[int]:
    """Count the forwards read in each pipelined stretch of the loop of one request."""
    reads: list[int] = []
    for event in events:
        if event.code == "B":
            reads.append(0)
        elif event.code in "PDR":
            reads[-1] += event.size if event.code == "P" else 1
    return reads


@settings(deadline=None)
@given(st.lists(strategies.requests(), min_size=1, max_size=6), strategies.any_policies(), st.integers(1, 4), st.data())
def test_a_clock_changes_no_tick(drawn: list[Request], policy: Policy, parallel: int, data: st.DataObject) -> None:
    requests = [replace(request, id=str(place)) for place, request in enumerate(drawn)]
    clients = data.draw(st.sampled_from([None, 1, 2, 5]))
    service = Service(server=Server(parallel=parallel, max_batch=3, storage="dense"), clients=clients)
    costs = machine(rows=parallel)

    _, ticks = clocked(requests, policy, costs, service)

    clockless = serve(requests, policy, RowPrices(costs), service.server, clients=clients)
    assert [tick.document() for tick in ticks] == [tick.document() for tick in clockless]


def test_the_times_of_two_clients_by_hand() -> None:
    # Both prompts take 4 ms each, one after the other. A step of two rows takes 20 ms and its reading 2 ms; the first
    # is synchronous, the second is thrown away with the third when the replies end in it, and done again.
    costs = replace(machine(rows=2), table=replace(machine(rows=2).table, prefill=Prefill(fixed_s=0.004)))
    service = Service(server=Server(parallel=2, storage="dense"), clients=2)

    server, ticks = clocked([prose("a", 3), prose("b", 3)], policies.load("plain"), costs, service)

    assert [(tick.worked.kind, tick.primed, tick.unwound) for tick in ticks] == [
        ("prefill", False, 0),
        ("prefill", False, 0),
        ("sync", True, 0),
        ("sync", False, 2),
    ]
    assert server.host.wasted == 2
    line = server.timeline.document()
    assert line["span_s"] == pytest.approx(0.008 + 0.022 + 0.040 + 0.022)
    assert line["tokens_per_s"] == pytest.approx(6 / 0.092)
    assert line["ttft_s"] == pytest.approx({"mean": 0.006, "p50": 0.004, "p95": 0.008, "p99": 0.008})
    # a waits for b's prompt before its second token: 26 ms, 62 ms; b: 22 ms, 62 ms.
    assert line["itl_s"] == pytest.approx({"mean": 0.043, "p50": 0.026, "p95": 0.062, "p99": 0.062})
    # Two tokens in 88 ms and in 84 ms; the slow tail is the 88.
    assert line["decode_tokens_per_s"] == pytest.approx(
        {"mean": (2 / 0.088 + 2 / 0.084) / 2, "p50": 2 / 0.084, "p95": 2 / 0.088, "p99": 2 / 0.088}
    )
    # b waits 4 of 92 ms.
    queue = line["queue"]
    assert isinstance(queue, dict)
    assert (queue["mean"], queue["longest"]) == (pytest.approx(0.004 / 0.092), 2)


@pytest.mark.parametrize("process", ["poisson:4/s", "gamma:4/s,0.3", "rate:4/s"])
def test_as_many_wait_as_littles_law_says(process: str) -> None:
    service = Service(server=Server(parallel=2, storage="dense"), arrivals=arrivals(process), seed=7)
    waits: list[float] = []
    costs = replace(machine(rows=2), table=replace(machine(rows=2).table, prefill=Prefill(fixed_s=0.05)))

    def seen(tick: Tick, at_s: float) -> None:
        for row in tick.released:
            request = server.timeline.released(row.id, at_s)
            waits.append(request.admitted_s - request.arrived_s)

    server = SimpyServer(policies.load("plain"), costs, service, seen)
    server.run(iter([prose(str(place), 20) for place in range(300)]))

    queue, span_s = server.timeline.queue_spread, server.timeline.span_s
    assert queue
    assert max(waits) > 0
    # The mean number waiting is the rate of arrivals times the mean wait.
    assert queue["mean"] == pytest.approx(len(waits) / span_s * (sum(waits) / len(waits)))


def test_clients_that_wait_for_their_answers_keep_as_many_requests_open_as_they_are() -> None:
    service = Service(server=Server(parallel=4, storage="dense"), clients=3)
    open_s = 0.0

    def seen(tick: Tick, at_s: float) -> None:
        nonlocal open_s
        open_s += sum(server.timeline.released(row.id, at_s).total_s for row in tick.released)

    costs = machine(rows=4)
    server = SimpyServer(policies.load("plain"), costs, service, seen)
    server.run(iter([prose(str(place), 10) for place in range(60)]))

    # Twenty rounds of three equal replies: three requests are open from the first arrival to the last release.
    assert open_s / server.timeline.span_s == pytest.approx(3)


def test_recorded_arrivals_are_kept_and_the_server_sleeps_in_between() -> None:
    requests = [prose("a", 2, arrival_s=1.0), prose("b", 2, arrival_s=5.0)]
    service = Service(server=Server(parallel=2, storage="dense"), arrivals=arrivals("recorded"))

    server, ticks = clocked(requests, policies.load("plain"), machine(rows=2), service)

    assert [tick.arrived for tick in ticks] == [("a",), (), ("b",), ()]
    assert server.timeline.span_s == pytest.approx(5.0 + STEP_S + HOST_S - 1.0)


def test_a_full_queue_refuses() -> None:
    service = Service(server=Server(parallel=1), arrivals=arrivals("rate:1000/s"), queue_limit=2)

    server, ticks = clocked([prose(str(place), 50) for place in range(9)], policies.load("plain"), machine(), service)

    # The first is admitted before the second comes; two wait; the others are refused.
    assert server.timeline.rejected == ["3", "4", "5", "6", "7", "8"]
    assert [row.id for tick in ticks for row in tick.released] == ["0", "1", "2"]
