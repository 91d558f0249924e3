"""Thousands of random schedules: the invariants hold after every tick, and every reply comes out exactly."""

from __future__ import annotations

import pytest

from simulator.serving.actions import Action, ForwardError, Outcome, Release, Unwind
from simulator.serving.recorded import RecordedReplies, carried_out
from simulator.serving.row import FAILED
from simulator.serving.scheduler import Inbox, Scheduler
from simulator.serving.tick import Tick
from tests.checked_server import PRICES, CheckedServer
from tests.random_schedules import Schedule, random_schedule

SCHEDULES = 10_000
BLOCKS = 20


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_invariants_hold_and_every_reply_is_emitted_exactly(block: int) -> None:
    for seed in range(block, SCHEDULES, BLOCKS):
        schedule = random_schedule(seed)
        server = CheckedServer(schedule.policy, schedule.server, schedule.fails())

        played(schedule, server)

        assert not server.open
        assert set(server.released) == {request.id for request in schedule.requests}
        whole = {"stop", "length", "guard"}
        for request in schedule.requests:
            if server.released[request.id].end in whole and schedule.server.max_kv_size is None:
                assert server.replies[request.id] == request.reply.tolist()


def played(schedule: Schedule, server: CheckedServer) -> list[Tick]:
    """Put a server through a schedule, and on until it is idle."""
    ticks = []
    for happening in schedule.happenings:
        tick = server.tick(*happening.arrived, cancelled=happening.cancelled, preempted=happening.preempted)
        ticks += [tick] if tick else []
    return ticks + server.run()


def test_recordings_and_an_engine_that_knows_no_future_make_the_same_ticks() -> None:
    for seed in range(500):
        schedule = random_schedule(seed)

        live = played(schedule, CheckedServer(schedule.policy, schedule.server, schedule.fails()))

        assert [tick.document() for tick in replayed(schedule)] == [tick.document() for tick in live]


def replayed(schedule: Schedule) -> list[Tick]:
    """Put recordings through the same schedule, with the same failures."""
    replies = RecordedReplies(schedule.policy, PRICES, schedule.server)
    scheduler = Scheduler(schedule.server, schedule.policy)
    fails = schedule.fails()

    def answer(action: Action) -> Outcome:
        if isinstance(action, Release) or not fails(action):
            return replies.answer(action)
        if isinstance(action, Unwind):
            return {action.rows[0]: FAILED}
        raise ForwardError(str(action))

    ticks = []
    happenings = iter(schedule.happenings)
    while (happening := next(happenings, None)) or not scheduler.idle:
        inbox = Inbox()
        if happening:
            inbox = Inbox([*map(replies.job, happening.arrived)], happening.cancelled, happening.preempted)
        tick = carried_out(scheduler.tick(inbox), answer)
        ticks += [tick] if tick else []
    return ticks
