"""A scheduler on the engine of the tests, with everything that can be seen from outside checked after every tick.

I1 to I8 are the invariants of docs/explanation/server.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import policies
from calibration import Costs
from policies import LookupPolicy, Policy
from simulator.serving.actions import (
    Action,
    ForwardError,
    Outcome,
    Prefill,
    Read,
    Release,
    Step,
    Submit,
    Unwind,
    Verify,
    Warm,
)
from simulator.serving.recorded import carried_out
from simulator.serving.row import FAILED, Row
from simulator.serving.scheduler import Inbox, Scheduler
from simulator.serving.server import Server
from simulator.serving.tick import Tick
from tests.batch_engine import BatchEngine
from traces import Request

PRICES = Costs("a machine", range(1, 4097), {width: 0.004 + 0.001 * width for width in range(1, 66)}, read_s=0.001)

# What each kind of tick may do: Prefill, Warm, sTep, Submit, Read, Verify, Unwind, and Forget for Release.
CODES = {Prefill: "P", Warm: "W", Step: "T", Submit: "S", Read: "R", Verify: "V", Unwind: "U", Release: "F"}
ORDER = {
    "prefill": re.compile("U?F?PW?F?"),
    "steady": re.compile("SR"),
    "switch": re.compile("RF?"),
    "sync": re.compile("(U|SRU|SU|RU)?T?S?U?F?"),
    "verify": re.compile("U?T?V+F?"),
}


class CheckedServer:
    """Serves requests tick by tick."""

    def __init__(
        self,
        policy: Policy | str = "gated",
        server: Server | None = None,
        fails: Callable[[Action], bool] = lambda action: False,
    ) -> None:
        """Set a server up; an action that `fails` brings nothing, and an unwinding that does loses its first row."""
        self.server = server or Server(storage="dense")
        self.policy = policies.load(policy) if isinstance(policy, str) else policy
        self.engine = BatchEngine(self.policy, PRICES, self.server)
        self.scheduler = Scheduler(self.server, self.policy)
        self.actions: list[Action] = []
        """Those of the last tick."""
        self.everything: list[Action] = []
        """Those of every tick."""
        self.released: dict[str, Row] = {}
        self.replies: dict[str, list[int]] = {}
        """What each released request has emitted."""
        self.open: dict[str, Request] = {}
        """Requests that have arrived and not been released."""
        self.fails = fails
        self._failed: set[Row] = set()
        """Rows that a failure may have ended."""
        self._emitted: dict[Row, list[int]] = {}
        """What rows had emitted when the engine was told to forget them."""
        self._forwards: Counter[Row] = Counter()
        self._verified: dict[Row, Counter[str]] = {}
        self._in_flight = False

    def tick(self, *arrived: Request, cancelled: Iterable[str] = (), preempted: Iterable[str] = ()) -> Tick | None:
        """Run one tick and check it."""
        self.open.update((request.id, request) for request in arrived)
        self.actions = []
        before = {row: row.generated for row in self.scheduler.rows}
        asks = {row: _asks(row) for row in before}
        inbox = Inbox([self.engine.job(request) for request in arrived], frozenset(cancelled), frozenset(preempted))
        tick = carried_out(self.scheduler.tick(inbox), self._answer)
        if tick is not None:
            self._check_order(tick)
            self._check_asks(tick, before)
            self._check_verifies(tick, before)
            if any(tick.worked.asked.values()) and not tick.worked.verify:
                assert {row: _asks(row) for row in before} == asks  # I4: a switch takes all its asks back
            self._check_rows(tick, before)
            self._check_released(tick, inbox)
            self._in_flight = tick.primed
        return tick

    def run(self, *arrived: Request) -> list[Tick]:
        """Tick until there is nothing left to do."""
        ticks = []
        tick = self.tick(*arrived)
        while tick:
            ticks.append(tick)
            tick = self.tick()
        return ticks

    def row(self, name: str) -> Row:
        """Return the row of a request that decodes."""
        return next(row for row in self.scheduler.rows if row.id == name)

    def _answer(self, action: Action) -> Outcome:
        self.actions.append(action)
        self.everything.append(action)
        rows = [action.row] if isinstance(action, Verify | Warm) else [*action.rows]
        if isinstance(action, Submit | Step | Verify):
            self._forwards.update(rows)
        if isinstance(action, Release):
            self._emitted = {row: self.engine.reply(row) for row in rows}
        elif self.fails(action):
            if isinstance(action, Unwind):
                self._failed.add(rows[0])
                return {**self.engine.answer(action), rows[0]: FAILED}
            if isinstance(action, Prefill | Step | Verify):
                self._failed.update(rows)
            raise ForwardError(str(action))
        return self.engine.answer(action)

    def _check_order(self, tick: Tick) -> None:
        done = "".join(CODES[type(action)] for action in self.actions)
        assert ORDER[tick.worked.kind].fullmatch(done), f"{tick.worked.kind}: {done}"
        # I6: what is in flight is unwound before anything else is touched, and read or unwound before a verify.
        if self._in_flight and tick.worked.kind in ("prefill", "verify"):
            assert isinstance(self.actions[0], Unwind)
        assert tick.unwound == sum(action.positions for action in self.actions if isinstance(action, Unwind))
        assert tick.unwound <= 3
        # I3: no step is submitted past a proposal made in the same tick.
        if any(tick.worked.asked.values()):
            assert "S" not in done
            assert not tick.primed

    def _check_asks(self, tick: Tick, before: Mapping[Row, int]) -> None:
        """I5: only rows inside the gate are asked, and all of them are; I6: a new row first on a later tick."""
        server, policy = self.server, self.policy
        gate = isinstance(policy, LookupPolicy) and len(before) <= server.max_batch and tick.worked.kind != "prefill"
        inside = {
            row.id: row.limit - generated - 1
            for row, generated in before.items()
            if gate and row.drafts and row.limit - generated > 1
            if row.job.prompt_tokens + generated <= server.paged_limit or not server.paged
        }
        asked = tick.worked.asked
        assert all(self.open[name].eligible for name in asked)
        lost = {row.id for row in self._failed}
        assert asked.keys() - lost == inside.keys() - lost
        assert all(tokens <= inside[name] for name, tokens in asked.items())

    def _check_verifies(self, tick: Tick, before: Mapping[Row, int]) -> None:
        """I4: every ask is followed by its forward or taken back, and the drafter knows no more than was emitted."""
        rows = {row.id: row for row in before}
        for name, width, accepted in tick.worked.verify:
            assert width == tick.worked.asked[name] + 1
            counts = self._verified.setdefault(rows[name], Counter())
            counts.update(drafted_rounds=1, proposed=width - 1, accepted=accepted)
        for row in before:
            if row.drafter:
                counts = self._verified.get(row, Counter())
                assert row.drafter.context <= row.context
                assert row.drafter.drafted_rounds == counts["drafted_rounds"]
                assert row.drafter.proposed == counts["proposed"]
                assert row.drafter.accepted == counts["accepted"]
                assert counts["accepted"] <= counts["proposed"]

    def _check_rows(self, tick: Tick, before: Mapping[Row, int]) -> None:
        if tick.worked.kind != "prefill":
            widths = {one.id: one.width for one in tick.worked.verify}
            assert tick.worked.emitted == {row.id: row.generated - generated for row, generated in before.items()}
            assert all(emitted <= widths.get(name, 1) for name, emitted in tick.worked.emitted.items())
        if tick.worked.kind == "steady":
            assert set(tick.worked.emitted.values()) == {1}
        assert len(self.scheduler.rows) <= self.server.parallel
        for row in self.scheduler.rows:
            assert row.end is None
            assert row.rounds == self._forwards[row]
            assert row.drains >= row.phantom_drains
            cache = self.engine.caches[row]
            assert cache.tokens == cache.prompt + cache.reply[: row.generated]
            # I1 and I2: the KV state holds everything but the last token, and that one too when a step is in flight.
            assert cache.kv == (cache.tokens if tick.primed else cache.tokens[:-1])

    def _check_released(self, tick: Tick, inbox: Inbox) -> None:
        for row in tick.released:
            request = self.open.pop(row.id)
            reply = self.replies[row.id] = self._emitted.get(row, [])
            whole = request.reply.tolist()
            assert reply == whole[: row.generated]
            if row.end in ("stop", "guard"):
                assert (reply, row.end) == (whole, request.finish)
            elif row.end == "length":
                assert row.generated == row.limit
            elif row.end == "error":
                assert row in self._failed  # I7: a failure ends nobody else
            else:
                assert row.id in inbox.cancelled
            self.released[row.id] = row
        # I8: who was given up has completed this tick and is gone after it.
        assert not inbox.cancelled & self.open.keys()


def _asks(row: Row) -> tuple[int, ...]:
    """Return what asks that were not taken back have counted."""
    drafter = row.drafter
    return (drafter.drafted_rounds, drafter.paused_rounds, drafter.proposed) if drafter else (0, 0, 0)
