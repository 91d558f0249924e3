"""Who gets in when: the queue, chunked and batched prefill, preemption and cancellation."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import SimulationError
from simulator.serving.actions import Action, Prefill
from simulator.serving.server import Server
from tests.checked_server import CheckedServer
from tests.cycle_model import COPY, PLAIN, admitted, cycle, kinds, pipelined, ticked


def test_requests_are_prefilled_one_a_tick_before_anybody_decodes() -> None:
    server = CheckedServer("plain", Server(parallel=2))

    ticks = server.run(cycle("a", PLAIN, 3), cycle("b", PLAIN, 3), cycle("c", PLAIN, 2))

    # With c in the queue nothing is safe to submit; the slots free up together and c decodes alone.
    assert kinds(ticks) == "prefill prefill sync sync prefill sync"
    assert [tick.worked.rows for tick in ticks if tick.worked.kind == "prefill"] == [("a",), ("b",), ("c",)]
    assert ticks[0].arrived == ("a", "b", "c")


def test_a_full_server_with_a_queue_has_nothing_in_flight() -> None:
    server = pipelined(cycle("a", PLAIN, 12), policy="plain", server=Server(parallel=1))

    arrival = ticked(server, cycle("b", PLAIN, 2))
    rest = server.run()

    assert (arrival.worked.kind, arrival.primed, arrival.unwound) == ("sync", False, 1)
    assert "*" not in kinds(rest)[: kinds(rest).index("prefill")]


def test_a_new_row_keeps_all_rows_synchronous_until_it_has_been_asked_three_times() -> None:
    server = pipelined(cycle("a", PLAIN, 30))

    ticks = [ticked(server, cycle("b", PLAIN, 30)), *(ticked(server) for _ in range(4))]

    assert kinds(ticks) == "prefill sync sync sync* steady*"


def test_a_new_row_that_closes_the_gate_costs_one_synchronous_tick() -> None:
    server = pipelined(cycle("a", PLAIN, 30), server=Server(max_batch=1))

    ticks = [ticked(server, cycle("b", PLAIN, 30)), *(ticked(server) for _ in range(2))]

    assert kinds(ticks) == "prefill sync* steady*"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # The parked prompt gets a chunk after every so many decode ticks; 0 makes it wait for an empty batch.
        (2, "prefill prefill sync sync prefill sync sync prefill sync sync* sync"),
        (1, "prefill prefill sync prefill sync prefill sync* steady* sync"),
        (0, "prefill prefill sync sync sync sync sync prefill prefill sync* steady* sync"),
    ],
)
def test_a_long_prompt_is_parked_between_its_chunks(interval: int, expected: str) -> None:
    server = CheckedServer("plain", Server(prefill_chunk=8, grant_interval=interval))

    ticks = server.run(cycle("a", PLAIN, 6), cycle("long", COPY, 4))

    assert kinds(ticks) == expected
    chunks = [action.tokens for action in server.everything if isinstance(action, Prefill)]
    assert chunks == [5, 8, 8, 4]
    assert [tick.worked.emitted["long"] for tick in ticks if tick.worked.rows == ("long",)][:3] == [0, 0, 1]


def test_a_parked_prompt_with_nobody_decoding_goes_on_at_once_and_alone() -> None:
    server = CheckedServer("plain", Server(prefill_chunk=8))

    ticks = server.run(cycle("long", COPY, 2), cycle("b", PLAIN, 2))

    assert kinds(ticks) == "prefill prefill prefill prefill sync"
    assert [tick.worked.rows for tick in ticks] == [("long",), ("long",), ("long",), ("b",), ("long", "b")]


@pytest.mark.parametrize(
    ("most", "chunk", "expected"),
    [
        (1, 2048, [("a",), ("b",), ("c",)]),
        (2, 2048, [("a", "b"), ("c",)]),
        (4, 2048, [("a", "b", "c")]),
        (4, 39, [("a",), ("b",), ("c",)]),  # b and a copy beside each other are 40 positions when padded
        (4, 40, [("a", "b"), ("c",)]),
    ],
)
def test_waiting_requests_are_prefilled_together_as_far_as_they_fit_one_chunk(
    most: int, chunk: int, expected: list[tuple[str, ...]]
) -> None:
    server = CheckedServer("plain", Server(max_batch_prefill=most, prefill_chunk=chunk))

    ticks = server.run(cycle("a", PLAIN, 2), cycle("b", COPY, 2), cycle("c", PLAIN, 2))

    assert [tick.worked.rows for tick in ticks if tick.worked.kind == "prefill"] == expected


def test_no_more_are_prefilled_together_than_there_are_slots() -> None:
    server = CheckedServer("plain", Server(parallel=2, max_batch_prefill=4))

    tick = ticked(server, cycle("a", PLAIN, 2), cycle("b", PLAIN, 2), cycle("c", PLAIN, 2))

    assert tick.worked.rows == ("a", "b")


def test_a_preempted_row_starts_over_behind_everybody_with_a_fresh_drafter() -> None:
    server = CheckedServer("gated", Server(parallel=2, storage="dense"))
    admitted(server, cycle("a", PLAIN, 9), cycle("b", PLAIN, 30))
    for _ in range(4):
        ticked(server)
    before = server.row("a")
    assert before.drafter

    # Nothing may be submitted while somebody waits for a row to make room, and the victim waits behind the new request.
    tick = ticked(server, cycle("c", PLAIN, 2), preempted=["a"])

    assert (tick.worked.kind, tick.worked.rows, tick.unwound) == ("prefill", ("c",), 1)
    assert [row.id for row in server.scheduler.rows] == ["b", "c"]
    server.run()
    assert len(server.replies["a"]) == 9
    assert server.released["a"] is not before


def test_a_preemption_waits_for_a_parked_prompt() -> None:
    server = CheckedServer("plain", Server(parallel=2, prefill_chunk=8, grant_interval=2))
    admitted(server, cycle("a", PLAIN, 20))

    ticks = [ticked(server, cycle("long", COPY, 9), preempted=["a"]), ticked(server), ticked(server)]

    assert [tick.worked.rows for tick in ticks] == [("long",), ("long",), ("long",)]


def test_a_preemption_of_somebody_who_does_not_decode_means_nothing() -> None:
    server = pipelined(cycle("a", PLAIN, 9))

    assert ticked(server, preempted=["nobody"]).worked.kind == "steady"


def test_a_row_given_up_in_a_steady_tick_completes_it_and_costs_three_positions() -> None:
    server = pipelined(cycle("a", PLAIN, 30), cycle("b", PLAIN, 30))

    tick = ticked(server, cancelled=["a"])

    assert (tick.worked.kind, dict(tick.worked.emitted)) == ("sync", {"a": 1, "b": 1})
    assert (tick.unwound, tick.primed) == (3, False)
    assert {row.id: row.end for row in tick.released} == {"a": "cancelled"}


def test_a_row_given_up_with_nothing_in_flight_costs_what_was_submitted_behind_it() -> None:
    server = CheckedServer("plain", Server(storage="dense"))
    admitted(server, cycle("a", PLAIN, 30))

    tick = ticked(server, cancelled=["a"])

    assert (tick.worked.kind, tick.unwound, tick.primed) == ("sync", 1, False)


def test_a_row_that_ends_in_the_tick_in_which_it_is_given_up_has_ended() -> None:
    server = pipelined(cycle("a", PLAIN, 5), policy="plain")
    while server.row("a").generated < 4:
        ticked(server)

    assert {row.id: row.end for row in ticked(server, cancelled=["a"]).released} == {"a": "length"}


def test_requests_given_up_in_the_queue_are_dropped_and_the_one_admitted_in_that_tick_is_prefilled_first() -> None:
    server = CheckedServer()

    tick = ticked(server, cycle("a", PLAIN, 3), cycle("b", PLAIN, 3), cancelled=["a", "b"])

    assert (tick.worked.kind, tick.worked.rows) == ("prefill", ("a",))
    assert {row.id: (row.end, row.generated) for row in tick.released} == {"a": ("cancelled", 1), "b": ("cancelled", 0)}
    assert server.scheduler.idle


def test_a_prompt_given_up_between_its_chunks_is_dropped() -> None:
    server = CheckedServer("plain", Server(prefill_chunk=8))
    ticked(server, cycle("long", COPY, 3))

    tick = ticked(server, cancelled=["long"])

    assert {row.id: row.end for row in tick.released} == {"long": "cancelled"}
    assert server.scheduler.idle


def test_a_prefill_that_fails_ends_its_request_only() -> None:
    def fails(action: Action) -> bool:
        return isinstance(action, Prefill) and action.rows[0].id == "a"

    server = CheckedServer("gated", fails=fails)

    server.run(cycle("a", PLAIN, 3), cycle("b", PLAIN, 3))

    assert {name: row.end for name, row in server.released.items()} == {"a": "error", "b": "length"}
    assert server.engine.warmed == ["b"]


def test_a_prompt_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"^a prompt of 20 tokens does not fit max_kv_size 20$"):
        Server(max_kv_size=20).limit(20, 5)


@pytest.mark.parametrize(
    "name", ["parallel", "max_batch", "max_batch_prefill", "prefill_chunk", "paged_limit", "max_kv_size"]
)
def test_a_server_without_room_is_refused(name: str) -> None:
    setting: dict[str, Any] = {name: 0}

    with pytest.raises(SimulationError, match=rf"^{name} must be at least 1 \(got 0\)$"):
        Server(**setting)


def test_a_negative_grant_interval_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"^grant_interval must be at least 0 \(got -1\)$"):
        Server(grant_interval=-1)
