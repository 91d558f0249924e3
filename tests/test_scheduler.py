"""The reference server's pinned behaviours, on its cycle model: every token is the last one plus 1, modulo 16.

Every tick of every test is checked by `CheckedServer`.
"""

from __future__ import annotations

import pytest

import policies
from policies import Drafter, NgramIndex
from simulator.serving.actions import Action, Warm
from simulator.serving.server import Server
from tests.checked_server import PRICES, CheckedServer
from tests.cycle_model import COPY, LATE_COPY, PLAIN, admitted, cycle, kinds, pipelined, ticked


def test_a_copy_comes_out_as_plain_decoding_would_say_it_and_its_acceptance_is_counted() -> None:
    drafting, plain = (CheckedServer(name, Server(storage="dense", max_batch=4)) for name in ("gated", "plain"))

    for server in (drafting, plain):
        server.run(cycle("copy", COPY, 40))

    assert drafting.replies["copy"] == plain.replies["copy"] == [(4 + place) % 16 for place in range(40)]
    drafter = drafting.released["copy"].drafter
    assert drafter
    assert 0 < drafter.accepted <= drafter.proposed
    assert plain.released["copy"].drafter is None


def test_a_row_without_proposals_gains_one_token_a_tick_beside_one_that_verifies() -> None:
    server = CheckedServer()
    admitted(server, cycle("copy", COPY, 48))
    for _ in range(3):
        ticked(server)

    ticks = [tick for tick in server.run(cycle("plain", PLAIN, 10)) if tick.worked.kind != "prefill"]

    beside = [tick.worked.emitted for tick in ticks if "plain" in tick.worked.rows]
    assert {emitted["plain"] for emitted in beside} == {1}
    assert max(emitted.get("copy", 0) for emitted in beside) > 1
    assert server.replies == {"copy": [(4 + i) % 16 for i in range(48)], "plain": [(9 + i) % 16 for i in range(10)]}


def test_a_row_that_never_proposes_stays_pipelined() -> None:
    server = CheckedServer()

    ticks = server.run(cycle("plain", PLAIN, 12))

    # The third quiet synchronous tick submits; the step that brings the last token is thrown away and done again.
    assert kinds(ticks) == "prefill sync sync sync*" + 7 * " steady*" + " sync"
    assert ticks[-1].unwound == 2
    drafter = server.released["plain"].drafter
    assert drafter
    assert (drafter.drafted_rounds, drafter.proposed) == (0, 0)


def test_a_proposal_with_a_step_in_flight_commits_that_step_and_verifies_on_the_next_tick() -> None:
    server = CheckedServer()

    ticks = server.run(cycle("late", LATE_COPY, 14))

    assert kinds(ticks) == "prefill sync sync sync* steady* switch verify sync sync sync* steady* sync"
    switch = next(tick for tick in ticks if tick.worked.kind == "switch")
    assert switch.worked.emitted == {"late": 1}
    verify = ticks[ticks.index(switch) + 1]
    assert verify.worked.emitted == {"late": 3}
    assert (server.released["late"].drains, server.released["late"].phantom_drains) == (1, 0)


def test_nobody_is_asked_in_a_batch_that_is_too_large() -> None:
    server = CheckedServer("gated", Server(storage="dense", max_batch=1))

    ticks = server.run(cycle("short", COPY, 6), cycle("long", COPY, 40))

    assert kinds(ticks) == "prefill prefill sync* steady* steady* steady* sync" + 5 * " verify"
    assert server.released["short"].drafter is None
    assert [list(tick.worked.asked) for tick in ticks] == 7 * [[]] + 5 * [["long"]]


def test_an_admission_throws_the_step_in_flight_away() -> None:
    server = pipelined(cycle("plain", PLAIN, 30))

    tick = ticked(server, cycle("copy", COPY, 12))

    assert (tick.worked.kind, tick.primed, tick.unwound) == ("prefill", False, 1)
    assert ticked(server).worked.asked == {"plain": 0, "copy": 2}
    server.run()
    assert server.replies["copy"] == [(4 + place) % 16 for place in range(12)]


def test_verifies_are_warmed_up_once_by_the_first_request_that_may_draft() -> None:
    server = CheckedServer()

    server.run(cycle("not eligible", PLAIN, 3, eligible=False), cycle("first", PLAIN, 1), cycle("second", PLAIN, 1))

    assert server.engine.warmed == ["first"]
    assert server.released["first"].rounds == 0


def test_nothing_is_warmed_up_for_a_policy_that_never_proposes() -> None:
    server = CheckedServer("plain")

    server.run(cycle("first", PLAIN, 1))

    assert server.engine.warmed == []


def test_a_warm_up_that_fails_is_not_tried_again() -> None:
    tried: list[str] = []

    def fails(action: Action) -> bool:
        if isinstance(action, Warm):
            tried.append(action.row.id)
        return isinstance(action, Warm)

    server = CheckedServer("gated", fails=fails)

    server.run(cycle("first", PLAIN, 1), cycle("second", PLAIN, 1))

    assert tried == ["first"]
    assert [row.end for row in server.released.values()] == ["length", "length"]


def test_a_context_bound_ends_a_reply_caps_its_proposals_and_puts_the_warm_up_off() -> None:
    server = CheckedServer("fixed", Server(storage="dense", max_kv_size=26))

    ticks = server.run(cycle("copy", COPY, 40))

    # Room for 26 - (20 + 1 + 2) proposals after the prefill; at 5 tokens 20 + 5 + 1 positions are spoken for.
    assert [dict(tick.worked.asked) for tick in ticks] == [{}, {"copy": 3}]
    assert server.replies["copy"] == [4, 5, 6, 7, 8]
    assert server.released["copy"].end == "length"
    assert server.engine.warmed == []


@pytest.mark.parametrize(("bound", "warmed"), [(29, []), (30, ["copy"])])
def test_verifies_are_warmed_up_where_the_longest_proposal_has_room(bound: int, warmed: list[str]) -> None:
    server = CheckedServer("fixed", Server(storage="dense", max_kv_size=bound))

    ticked(server, cycle("copy", COPY, 40))

    # 20 prompt tokens, the first of the reply, 7 proposals, and 2 positions.
    assert server.engine.warmed == warmed


def test_a_context_bound_keeps_anything_from_being_in_flight() -> None:
    server = CheckedServer("plain", Server(storage="dense", max_kv_size=26))

    assert kinds(server.run(cycle("plain", PLAIN, 8))) == "prefill" + 7 * " sync"


def test_a_drafter_that_is_ahead_of_its_row_is_dropped() -> None:
    server = CheckedServer()
    admitted(server, cycle("copy", COPY, 9))
    row = server.row("copy")
    row.drafter = Drafter(policies.load("gated").governor(PRICES), NgramIndex(COPY), len(COPY) + 2)

    ticks = server.run()

    assert [dict(tick.worked.asked) for tick in ticks] == [{}] * len(ticks)
    assert row.drafter is None
    assert server.replies["copy"] == [(4 + place) % 16 for place in range(9)]
