"""What a decode tick does: steps in flight, proposals beside them, verifies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simulator.serving.server import Server
from tests.checked_server import CheckedServer
from tests.cycle_model import COPY, LATE_COPY, PLAIN, cycle, kinds
from traces import Request

BAIT = [token for block in range(2) for token in (100 + block, 110 + block, 50, 51, 120 + block)]
"""Says 50 and 51 again and again, but never what followed them in the prompt."""


def request(reply: Sequence[int], prompt: Sequence[int] = (50, 51, 52, 53), finish: str = "stop") -> Request:
    return Request.of(id="r", prompt=prompt, reply=reply, finish=finish)


@pytest.mark.parametrize(
    ("finish", "reply", "expected", "emitted"),
    [
        ("stop", [1, 2, 3], "prefill sync* steady* sync", 0),
        ("length", [1, 2, 3], "prefill sync* sync", 1),
        ("guard", [1, 2, 3], "prefill sync* sync", 1),
        ("length", [1], "prefill", 1),
        ("guard", [1], "prefill", 1),
        ("stop", [1], "prefill sync", 0),
    ],
)
def test_a_step_in_flight_that_ends_a_row_is_thrown_away_with_the_next_and_done_again(
    finish: str, reply: list[int], expected: str, emitted: int
) -> None:
    server = CheckedServer("plain")

    ticks = server.run(request(reply, finish=finish))

    assert kinds(ticks) == expected
    assert ticks[-1].worked.emitted == {"r": emitted}
    assert ticks[-1].unwound == 2 * ("*" in expected)
    assert server.released["r"].end == finish


def test_the_other_rows_of_a_tick_that_ends_a_row_go_on_in_flight() -> None:
    server = CheckedServer("plain")

    ticks = server.run(cycle("a", PLAIN, 4), cycle("b", PLAIN, 8))

    # b loses two forwards with a, and a step that ended a row is not followed by one in flight.
    assert kinds(ticks) == "prefill prefill sync* steady* sync sync* steady* steady* sync"
    assert server.released["b"].rounds == 7 + 2 + 2


def test_a_row_that_may_not_be_pipelined_stops_the_pipeline_of_all() -> None:
    server = CheckedServer("plain", Server(storage="dense"))

    ticks = server.run(cycle("a", PLAIN, 3, pipelinable=False), cycle("b", PLAIN, 7))

    assert kinds(ticks) == "prefill prefill sync sync sync* steady* steady* sync"


def test_a_server_may_be_kept_from_pipelining() -> None:
    server = CheckedServer("plain", Server(pipelined=False))

    assert kinds(server.run(cycle("a", PLAIN, 4))) == "prefill sync sync sync"


def test_a_row_that_is_not_eligible_decodes_beside_a_verify() -> None:
    server = CheckedServer("fixed", Server(storage="dense"))

    ticks = server.run(cycle("plain", COPY, 9, eligible=False), cycle("copy", COPY, 9))

    verify = ticks[2].worked
    assert (verify.kind, dict(verify.asked), dict(verify.emitted)) == ("verify", {"copy": 7}, {"plain": 1, "copy": 8})


def test_each_of_two_rows_runs_its_own_verify_round() -> None:
    server = CheckedServer("fixed", Server(storage="dense"))

    ticks = server.run(cycle("a", COPY, 9), cycle("b", COPY, 9))

    assert kinds(ticks) == "prefill prefill verify"
    assert [(one.id, one.width, one.accepted) for one in ticks[2].worked.verify] == [("a", 8, 7), ("b", 8, 7)]
    assert ticks[2].primed is False


def test_a_proposal_that_is_gone_when_the_step_is_read_is_a_phantom_drain() -> None:
    server = CheckedServer("graded")

    ticks = server.run(request(BAIT, finish="length"))

    assert kinds(ticks) == "prefill sync sync sync* switch sync sync sync* steady* sync"
    row = server.released["r"]
    assert (row.drains, row.phantom_drains) == (1, 1)
    # The ask that is taken back leaves the streak at 0, so three more quiet ticks pass before anything is submitted.
    assert row.drafter
    assert (row.drafter.drafted_rounds, row.drafter.proposed) == (0, 0)


def test_a_drain_with_one_token_left_is_a_phantom_one_and_one_that_reads_the_stop_is_none() -> None:
    left_one, ended = CheckedServer("graded"), CheckedServer("graded")

    left_one.run(request([*BAIT[:4], 9, 9], finish="length"))
    ended.run(request(BAIT[:4], finish="stop"))

    assert (left_one.released["r"].drains, left_one.released["r"].phantom_drains) == (1, 1)
    assert (ended.released["r"].drains, ended.released["r"].phantom_drains) == (1, 0)


def test_a_drain_in_which_a_row_ends_is_no_phantom_whatever_the_others_do_next() -> None:
    server = CheckedServer("graded", Server(storage="dense"))
    beside = Request.of(id="beside", prompt=[*range(60, 70)], reply=[*range(200, 220)], finish="length")

    server.run(request(BAIT[:4]), beside)

    assert (server.released["r"].drains, server.released["r"].phantom_drains) == (1, 0)


def test_a_switch_takes_back_the_asks_of_paused_rows_too() -> None:
    server = CheckedServer("gated", Server(storage="dense"))
    paused = Request.of(id="paused", prompt=[50, 51, 52, 53, 50, 51], reply=[52, *range(200, 230)], finish="length")

    ticks = server.run(cycle("late", LATE_COPY, 14), paused)

    # The row pauses in the first tick in which it is asked.
    asked = [tick.worked.kind for tick in ticks if "paused" in tick.worked.asked][1:]
    assert "switch" in asked
    drafter = server.released["paused"].drafter
    assert drafter
    assert drafter.paused_rounds == len(asked) - asked.count("switch")


def test_three_quiet_ticks_follow_a_verify_before_anything_is_submitted() -> None:
    server = CheckedServer("fixed")

    ticks = server.run(request([52, 53, 1, 2, 3, 4, 5, 6, 7], prompt=(50, 51, 52, 53, 50, 51)))

    assert kinds(ticks) == "prefill verify sync sync sync* steady* steady* steady* sync"


def test_the_tick_after_a_verify_that_paused_its_row_submits() -> None:
    server = CheckedServer("gated")

    ticks = server.run(request([52, 1, 2, 3, 4], prompt=(50, 51, 52, 53, 50, 51)))

    assert kinds(ticks)[:34] == "prefill verify sync* steady* stead"
    assert ticks[1].worked.verify[0].accepted == 0


def test_a_paged_row_past_the_limit_is_not_asked_and_blocks_nobody() -> None:
    server = CheckedServer("gated", Server(paged_limit=7))

    ticks = server.run(cycle("a", PLAIN, 9))

    # 5 prompt tokens: asked at 6 and 7 tokens of context, and after that the row may be submitted at once.
    assert [list(tick.worked.asked) for tick in ticks[:4]] == [[], ["a"], ["a"], []]
    assert kinds(ticks) == "prefill sync sync* steady* steady* steady* steady* steady* sync"


def test_a_dense_row_is_asked_at_any_context() -> None:
    server = CheckedServer("gated", Server(storage="dense", paged_limit=7))

    ticks = server.run(cycle("a", PLAIN, 9))

    assert [list(tick.worked.asked) for tick in ticks[1:-1]] == 7 * [["a"]]
