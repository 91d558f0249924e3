"""The scheduler of a server, without a clock: one tick after another.

A tick takes in what has arrived, does one thing, and lets finished rows go. What it does is either to prefill, which
throws a step in flight away, or to decode every row. The rules are the reference server's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import NamedTuple

from policies import LookupPolicy, Policy
from simulator.serving.actions import ForwardError, Prefill, Release, Warm, Work
from simulator.serving.batch import Batch
from simulator.serving.row import FAILED, TOKEN, Job, Row
from simulator.serving.server import Server
from simulator.serving.tick import Tick, Worked


class Inbox(NamedTuple):
    """What happened since the last tick."""

    arrived: Sequence[Job] = ()
    cancelled: AbstractSet[str] = frozenset()
    """Ids of requests that their clients have given up."""
    preempted: AbstractSet[str] = frozenset()
    """Ids of rows whose slot somebody else needs: they start over behind everybody who waits."""


EMPTY = Inbox()


class Scheduler:
    """Requests that wait, a prompt that may be parked between two chunks, and the rows that decode."""

    def __init__(self, server: Server, policy: Policy) -> None:
        self._server = server
        self._batch = Batch(server, policy.pipeline_after)
        self._queue: deque[Job] = deque()
        self._parked: Row | None = None
        self._waited = 0
        """Decode ticks since the last prefill."""
        self._preempted: set[str] = set()
        self._cold_draft = policy.max_draft if isinstance(policy, LookupPolicy) else 0
        """Longest proposal that verifies have yet to be warmed up for; 0 once they are."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rows that decode, in order of admission."""
        return self._batch.rows

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do before somebody arrives."""
        return not (self._batch.rows or self._parked or self._queue)

    def tick(self, inbox: Inbox = EMPTY) -> Work[Tick | None]:
        """Run one iteration; None when there was nothing to do."""
        batch = self._batch
        if inbox.arrived:
            self._queue.extend(inbox.arrived)
        if self.idle:
            return None
        if inbox.preempted or self._preempted:
            self._preempted = (self._preempted | inbox.preempted) & {row.id for row in batch.rows}
        batch.unwound = 0
        if self._prefill_is_due:
            self._waited = 0
            worked = yield from self._prefill()
        else:
            self._waited += 1
            worked = yield from batch.decode(not (self._queue or self._parked), inbox.cancelled)
        released: Sequence[Row] = ()
        if worked.kind != "steady" or inbox.cancelled:
            released = yield from self._release(inbox.cancelled)
        arrived = tuple([job.id for job in inbox.arrived]) if inbox.arrived else ()
        return Tick(arrived, worked, batch.in_flight, batch.unwound, tuple(released))

    @property
    def _prefill_is_due(self) -> bool:
        """Whether the next thing to do is to prefill rather than to decode."""
        decoding = len(self._batch.rows)
        if not decoding:
            return True
        if self._parked is None:
            return bool(self._preempted) or (decoding < self._server.parallel and bool(self._queue))
        return 0 < self._server.grant_interval <= self._waited

    def _prefill(self) -> Work[Worked]:
        """Admit who is next, or go on with the parked prompt."""
        batch = self._batch
        if batch.in_flight:
            yield from batch.unwind(1)
        if self._parked is None:
            yield from self._preempt()
            rows = self._admitted()
        else:
            rows = [self._parked]
        tokens = min(self._server.prefill_chunk, max(row.job.prompt_tokens - row.prefilled for row in rows))
        try:
            outcome = yield Prefill(rows, tokens)
        except ForwardError:
            outcome = dict.fromkeys(rows, FAILED)
        for row in rows:
            row.prefilled = min(row.prefilled + tokens, row.job.prompt_tokens)
        done = [row for row in rows if row in outcome or row.prefilled == row.job.prompt_tokens]
        for row in done:
            row.land(outcome.get(row, TOKEN))
            yield from self._warm(row)
            batch.join(row)
        self._parked = None if done else rows[0]
        return Worked("prefill", tuple(row.id for row in rows), {}, {row.id: row.generated for row in rows})

    def _preempt(self) -> Work[None]:
        """Take the slots of preempted rows; what they emitted is void, and they wait behind everybody else."""
        leaving = [row for row in self._batch.rows if row.id in self._preempted]
        if leaving:
            self._preempted.clear()
            self._queue.extend(row.job for row in leaving)
            self._batch.leave(leaving)
            yield Release(leaving)

    def _admitted(self) -> list[Row]:
        """Take requests from the head of the queue: as many as may be prefilled together in one padded chunk."""
        server = self._server
        most = min(server.max_batch_prefill, server.parallel - len(self._batch.rows))
        rows: list[Row] = []
        longest = 0
        while self._queue and len(rows) < most:
            job = self._queue[0]
            longest = max(longest, job.prompt_tokens)
            if rows and longest * (len(rows) + 1) > server.prefill_chunk:
                break
            rows.append(Row(self._queue.popleft()))
        return rows

    def _warm(self, row: Row) -> Work[None]:
        """Run every verify width once, on the first row that may draft and has room for the longest proposal."""
        if not (self._cold_draft and row.drafts) or row.end == "error":
            return
        if self._server.room(row.context) < self._cold_draft:
            return
        with suppress(ForwardError):  # then the first verify of a width is slow; nothing else is lost
            yield Warm(row, self._cold_draft)
        self._cold_draft = 0

    def _release(self, cancelled: AbstractSet[str]) -> Work[Sequence[Row]]:
        """Let go of whoever has ended or was given up; a step in flight was made for all rows and is thrown away."""
        batch = self._batch
        held = batch.rows if self._parked is None else (*batch.rows, self._parked)
        given_up = self._given_up(held, cancelled) if cancelled else ()
        gone = [row for row in held if row.end]
        if not gone:
            return given_up
        if batch.in_flight:
            yield from batch.unwind(1)
            gone = [row for row in held if row.end]  # whoever could not be unwound is gone too
        batch.leave(gone)
        self._parked = None if self._parked in gone else self._parked
        yield Release(gone)
        return (*gone, *given_up)

    def _given_up(self, held: Sequence[Row], cancelled: AbstractSet[str]) -> Sequence[Row]:
        """End the rows that were given up, and return those that were only waiting for a slot."""
        waiting = [Row(job) for job in self._queue if job.id in cancelled]
        self._queue = deque(job for job in self._queue if job.id not in cancelled)
        for row in (*held, *waiting):
            if row.id in cancelled and not row.end:
                row.end = "cancelled"
        return waiting
