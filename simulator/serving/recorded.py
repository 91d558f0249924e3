"""Recorded replies served again: what every action of a scheduler brings, and what arrives when, without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from policies import Drafter, LookupPolicy, Policy, Prices
from simulator.errors import SimulationError
from simulator.recorded import Recording
from simulator.serving.actions import NOTHING, Action, ForwardError, Outcome, Prefill, Read, Step, Submit, Verify, Work
from simulator.serving.row import Job, Landed, Row
from simulator.serving.scheduler import Inbox, Scheduler
from simulator.serving.server import Server
from simulator.serving.tick import Tick
from traces import Request

T = TypeVar("T")


class RecordedReplies:
    """Answers the actions of a scheduler out of recordings."""

    def __init__(self, policy: Policy, prices: Prices, server: Server) -> None:
        self._policy = policy
        self._prices = prices
        self._server = server
        self._recordings: dict[str, Recording] = {}
        self._lasts: dict[str, int] = {}
        """Tokens that each request has emitted when its end is read."""

    def job(self, request: Request) -> Job:
        """Take in a request, and return it as a scheduler needs to know it.

        Raises:
            SimulationError: its prompt does not fit the server.
        """
        recording = self._recordings[request.id] = Recording(request)
        self._lasts[request.id] = recording.reply_tokens - (request.finish == "guard")
        policy, prices = self._policy, self._prices
        try:
            limit = self._server.limit(recording.prompt_tokens, recording.max_tokens)
        except SimulationError as error:
            raise SimulationError(f"request {request.id!r}: {error}") from None

        def drafter() -> Drafter:
            assert isinstance(policy, LookupPolicy)
            return Drafter(policy.governor(prices), recording.lookup(policy), recording.prompt_tokens + 1)

        drafts = request.eligible and isinstance(policy, LookupPolicy)
        return Job(
            request.id,
            recording.prompt_tokens,
            limit,
            request.pipelinable,
            drafter if drafts else None,
            request.reason,
        )

    def forget(self, row: Row) -> None:
        """Let go of the request of a row that was released."""
        del self._recordings[row.id], self._lasts[row.id]

    def answer(self, action: Action) -> Outcome:
        """Return what an action brings each row."""
        match action:
            case Submit():
                return NOTHING
            case Read(rows) | Step(rows):
                return self._ends(rows)
            case Prefill(rows, tokens):
                return self._ends([row for row in rows if row.prefilled + tokens >= row.job.prompt_tokens])
            case Verify(row, proposed):
                return {row: self._verified(row, proposed)}
        return NOTHING

    def _ends(self, rows: Sequence[Row]) -> Outcome:
        """Name the rows that read the stop, or whose next token somebody ends the reply at."""
        lasts = self._lasts
        return {row: self._end(row) for row in rows if row.generated >= lasts[row.id]}

    def _end(self, row: Row) -> Landed:
        guarded = self._recordings[row.id].request.finish == "guard"
        return Landed(1, end="guard") if guarded else Landed(0, end="stop")

    def _verified(self, row: Row, proposed: int) -> Landed:
        assert isinstance(self._policy, LookupPolicy)
        recording = self._recordings[row.id]
        left = recording.reply_tokens - row.generated
        true_tokens = recording.lookup(self._policy).true_tokens(row.context)
        emitted, accepted, stop = recording.land(true_tokens, proposed, left)
        guarded = recording.request.finish == "guard" and emitted == left
        return Landed(emitted, accepted, "stop" if stop else "guard" if guarded else None)


def carried_out(work: Work[T], answer: Callable[[Action], Outcome]) -> T:
    """Execute the actions of a scheduler, one after another, and return what it made of them."""
    try:
        action = next(work)
        while True:
            try:
                outcome = answer(action)
            except ForwardError as error:
                action = work.throw(error)
            else:
                action = work.send(outcome)
    except StopIteration as done:
        value: T = done.value
        return value


def serve(
    requests: Iterable[Request], policy: Policy, prices: Prices, server: Server, *, clients: int | None = None
) -> Iterator[Tick]:
    """Serve recorded requests and yield the ticks.

    Args:
        requests: what was said, in order of arrival.
        policy: what to propose and when.
        prices: what a policy may know of the machine.
        server: how the server is set up.
        clients: how many requests are there at first, each release letting the next arrive; None sends all at once.

    Raises:
        SimulationError: a prompt does not fit the server.
    """
    replies = RecordedReplies(policy, prices, server)
    scheduler = Scheduler(server, policy)
    coming = iter(requests)
    arrivals = clients
    while True:
        inbox = Inbox([replies.job(request) for request in islice(coming, arrivals)])
        tick = carried_out(scheduler.tick(inbox), replies.answer)
        if tick is None:
            return
        for row in tick.released:
            replies.forget(row)
        arrivals = len(tick.released)
        yield tick
