"""The rows that decode side by side, and the step that they may have in flight.

The rules are the reference server's. A tick begins by asking the rows that may be asked. With a step in flight and no
proposal the next step is submitted before the one in flight is read; a proposal leaves it unsubmitted, so that the next
tick finds nothing in flight and can verify. After a tick that steps with nothing in flight the next step is submitted
if every row that may be asked has been quiet for long enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from simulator.serving.actions import ForwardError, Outcome, Read, Step, Submit, Unwind, Verify, Work
from simulator.serving.row import FAILED, TOKEN, Row
from simulator.serving.server import Server
from simulator.serving.tick import Kind, Verified, Worked


class Batch:
    """Decodes its rows one tick at a time."""

    def __init__(self, server: Server, pipeline_after: int) -> None:
        self.rows: tuple[Row, ...] = ()
        """In order of admission."""
        self.in_flight = False
        """Whether a step of every row has been submitted and not read."""
        self.unwound = 0
        """Positions taken back from each row since somebody set this to 0."""
        self._server = server
        self._pipeline_after = pipeline_after
        self._pipelinable = True
        self._ids: tuple[str, ...] = ()
        self._one_each: Mapping[str, int] = {}
        """What a steady tick emits."""
        self._left = 0
        """With a step in flight: tokens that the row closest to its limit may still emit."""
        self._drained: Sequence[Row] = ()
        """Rows whose proposal kept the last decode tick from submitting a step."""

    def join(self, row: Row) -> None:
        """Take in a row whose prompt has been prefilled."""
        self._set_rows((*self.rows, row))

    def leave(self, leaving: Collection[Row]) -> None:
        """Let rows go; nothing may be in flight."""
        self._set_rows(tuple(row for row in self.rows if row not in leaving))

    def unwind(self, positions: int) -> Work[None]:
        """Throw away what is in flight."""
        self.in_flight = False
        self.unwound += positions
        lost = yield Unwind(self.rows, positions)
        for row, landed in lost.items():
            row.land(landed)

    def decode(self, safe: bool, cancelled: AbstractSet[str]) -> Work[Worked]:
        """Run one decode tick.

        Args:
            safe: whether nobody waits for a slot or a chunk.
            cancelled: ids of requests that their clients have given up.
        """
        pipelined = safe and self._pipelinable
        if self.in_flight and not pipelined:
            yield from self.unwind(1)
        asked = self._ask()
        told = {row.id: tokens for row, tokens in asked.items()} if asked else {}
        proposals = {row: tokens for row, tokens in asked.items() if tokens} if asked else {}
        if self._drained:
            self._count_phantoms(proposals)
        if self.in_flight and not proposals and (yield from self._steady(cancelled)):
            return Worked("steady", self._ids, told, self._one_each)
        before = [row.generated for row in self.rows]
        verified: tuple[Verified, ...] = ()
        kind: Kind
        if self.in_flight:
            kind = yield from self._switch(asked, proposals)
        elif proposals:
            kind, verified = "verify", (yield from self._verify(proposals))
        else:
            kind = yield from self._sync(prime=pipelined)
        emitted = {row.id: row.generated - past for row, past in zip(self.rows, before, strict=True)}
        return Worked(kind, self._ids, told, emitted, verified)

    def _steady(self, cancelled: AbstractSet[str]) -> Work[bool]:
        """Submit the next step and read the one in flight; if a row ends there, throw both away and return False."""
        positions = 1
        try:
            yield self._submitted()
            positions = 2
            outcome = yield Read(self.rows)
        except ForwardError:
            ends = True
        else:
            ends = bool(outcome) or self._left == 1 or not cancelled.isdisjoint(self._ids)
        if ends:
            yield from self.unwind(positions)
            return False
        for row in self.rows:
            row.generated += 1
        self._left -= 1
        return True

    def _switch(self, asked: Collection[Row], proposals: Collection[Row]) -> Work[Kind]:
        """Read the step in flight with nothing behind it; its token may change what is proposed, so no ask counts."""
        for row in asked:
            row.retract()
        try:
            outcome = yield Read(self.rows)
        except ForwardError:
            yield from self.unwind(1)
            return (yield from self._sync(prime=False))
        self.in_flight = False
        _land(self.rows, outcome)
        for row in proposals:
            row.drains += 1
        self._drained = [row for row in proposals if row.end is None]
        return "switch"

    def _sync(self, *, prime: bool) -> Work[Kind]:
        """Step every row and read it, then submit the next step if that may be done."""
        yield from self._step(self._live)
        if prime and len(self._live) == len(self.rows) and all(map(self._quiet, self._askable())):
            with suppress(ForwardError):  # then nothing is in flight, and the next tick steps synchronously
                yield self._submitted()
                self.in_flight = True
                self._left = min(row.limit - row.generated for row in self.rows)
        return "sync"

    def _verify(self, proposals: dict[Row, int]) -> Work[tuple[Verified, ...]]:
        """Step the rows without a proposal together, then verify each proposal on its own."""
        yield from self._step([row for row in self._live if row not in proposals])
        verified = []
        for row, tokens in proposals.items():
            row.rounds += 1
            try:
                landed = (yield Verify(row, tokens)).get(row, TOKEN)
                row.land_verify(landed)
            except ForwardError:
                landed = FAILED
                row.land(landed)
            verified.append(Verified(row.id, tokens + 1, landed.accepted))
        return tuple(verified)

    def _step(self, rows: Sequence[Row]) -> Work[None]:
        if not rows:
            return
        for row in rows:
            row.rounds += 1
        try:
            outcome = yield Step(rows)
        except ForwardError:
            outcome = dict.fromkeys(rows, FAILED)
        _land(rows, outcome)

    def _submitted(self) -> Submit:
        """Count a step that is being submitted."""
        for row in self.rows:
            row.rounds += 1
        return Submit(self.rows)

    @property
    def _live(self) -> Sequence[Row]:
        """Rows that have not ended in this tick."""
        return [row for row in self.rows if row.end is None]

    def _ask(self) -> dict[Row, int]:
        """Ask every row that may be asked, and return what each proposes."""
        asked = {}
        for row in self._askable():
            tokens = row.ask(self.in_flight, len(self.rows))
            if tokens is not None:
                asked[row] = tokens
        return asked

    def _askable(self) -> Sequence[Row]:
        """Return the rows that may be asked: none in too large a batch, and none without room for a proposal."""
        if len(self.rows) > self._server.max_batch:
            return ()
        furthest = self._server.draft_context
        return [
            row
            for row in self.rows
            if row.drafts and row.end is None and row.limit - row.generated > 1 and row.context <= furthest
        ]

    def _quiet(self, row: Row) -> bool:
        return row.quiet(self._pipeline_after)

    def _count_phantoms(self, proposals: Collection[Row]) -> None:
        for row in self._drained:
            row.phantom_drains += row not in proposals
        self._drained = ()

    def _set_rows(self, rows: tuple[Row, ...]) -> None:
        server = self._server
        self.rows = rows
        self._ids = tuple(row.id for row in rows)
        self._one_each = dict.fromkeys(self._ids, 1)
        self._pipelinable = server.pipelined and server.max_kv_size is None and all(row.job.pipelinable for row in rows)


def _land(rows: Sequence[Row], outcome: Outcome) -> None:
    for row in rows:
        row.land(outcome.get(row, TOKEN))
