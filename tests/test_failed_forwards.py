"""What a decode tick does when a forward fails or a row cannot be unwound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.serving.actions import Action, Read, Step, Submit, Unwind, Verify
from simulator.serving.server import Server
from tests.checked_server import CheckedServer
from tests.cycle_model import COPY, LATE_COPY, PLAIN, cycle, kinds, pipelined, ticked


def failing(kind: type[Action]) -> Callable[[Action], bool]:
    """Return what makes the first action of a kind fail."""
    failed: list[Action] = []

    def fails(action: Action) -> bool:
        if isinstance(action, kind) and not failed:
            failed.append(action)
            return True
        return False

    return fails


def test_a_step_that_cannot_be_submitted_is_not_missed() -> None:
    server = CheckedServer("plain", fails=failing(Submit))

    assert kinds(server.run(cycle("a", PLAIN, 6))) == "prefill sync sync* steady* steady* sync"


@pytest.mark.parametrize(("kind", "unwound"), [(Submit, 1), (Read, 2)])
def test_a_steady_tick_that_fails_is_done_again_synchronously(kind: type[Action], unwound: int) -> None:
    server = pipelined(cycle("a", PLAIN, 9), policy="plain")
    server.fails = failing(kind)

    tick = ticked(server)

    assert (tick.worked.kind, tick.unwound, tick.primed) == ("sync", unwound, True)
    server.run()
    assert server.released["a"].end == "length"


def test_a_switch_that_cannot_be_read_steps_synchronously_and_submits_nothing() -> None:
    server = CheckedServer("gated")
    tick = ticked(server, cycle("late", LATE_COPY, 7))
    while tick.worked.kind != "steady":
        tick = ticked(server)
    server.fails = failing(Read)

    tick = ticked(server)

    # The step leaves one token, so that nobody would be in the way of a submission.
    assert (tick.worked.kind, tick.unwound, tick.primed) == ("sync", 1, False)
    assert (dict(tick.worked.asked), dict(tick.worked.emitted)) == ({"late": 1}, {"late": 1})
    server.run()
    assert (server.released["late"].drains, server.released["late"].end) == (0, "length")


def test_a_verify_that_fails_ends_its_row_only() -> None:
    server = CheckedServer("fixed", Server(storage="dense"), fails=failing(Verify))

    ticks = server.run(cycle("a", COPY, 30), cycle("b", COPY, 30))

    assert {row.id: row.end for row in ticks[2].released} == {"a": "error"}
    assert server.replies["a"] == [4]
    assert server.released["b"].end == "length"


def test_a_synchronous_step_that_fails_ends_its_rows() -> None:
    server = CheckedServer("plain", fails=failing(Step))

    server.run(cycle("a", PLAIN, 5), cycle("b", PLAIN, 5))

    assert {name: row.end for name, row in server.released.items()} == {"a": "error", "b": "error"}


def test_a_row_that_cannot_be_unwound_is_lost_and_the_others_step_on() -> None:
    server = pipelined(cycle("a", PLAIN, 20), cycle("b", PLAIN, 20), policy="plain")
    server.fails = failing(Unwind)

    tick = ticked(server, cancelled=["b"])

    assert (dict(tick.worked.emitted), tick.unwound) == ({"a": 0, "b": 1}, 2)
    assert {row.id: row.end for row in tick.released} == {"a": "error", "b": "cancelled"}


def test_a_row_that_is_lost_when_an_arrival_unwinds_it_is_not_asked() -> None:
    server = pipelined(cycle("a", PLAIN, 20), cycle("b", PLAIN, 20), server=Server(parallel=2))
    server.fails = failing(Unwind)

    tick = ticked(server, cycle("c", PLAIN, 5))

    assert (tick.worked.kind, list(tick.worked.asked), dict(tick.worked.emitted)) == ("sync", ["b"], {"a": 0, "b": 1})
    assert {row.id: row.end for row in tick.released} == {"a": "error"}
