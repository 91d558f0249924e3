"""A server on a clock: requests that arrive, a host that schedules, and a device that runs what it submits.

The time model is that of one request (`simulator.two_clocks`), with the forwards of a server. Requests arrive in a
process of their own; the host takes in what has arrived when a tick begins, and sleeps while there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import simpy

from calibration import RowPrices, ServerCosts
from policies import Policy
from simulator.serving.actions import Prefill
from simulator.serving.host import Host
from simulator.serving.recorded import RecordedReplies
from simulator.serving.row import Job
from simulator.serving.scheduler import EMPTY, Inbox, Scheduler
from simulator.serving.service import Service
from simulator.serving.tick import Tick
from simulator.serving.timeline import Timeline
from traces import Request

Process = Generator[simpy.Event, None, None]


class SimpyServer:
    """Serves recorded requests on a clock."""

    def __init__(
        self, policy: Policy, costs: ServerCosts, service: Service, seen: Callable[[Tick, float], None]
    ) -> None:
        """Set a server up.

        Args:
            policy: what to propose and when.
            costs: what forwards cost; a policy is told what they cost its row.
            service: the server and who uses it.
            seen: called with every tick when it is over, and the seconds on the clock.
        """
        self.timeline = Timeline()
        self._env = simpy.Environment()
        self.host = Host(costs)
        self._service = service
        self._replies = RecordedReplies(policy, RowPrices(costs), service.server)
        self._scheduler = Scheduler(service.server, policy)
        self._seen = seen
        self._inbox: list[Job] = []
        self._asleep: simpy.Event | None = None
        self._coming: Iterator[Request] = iter(())

    def run(self, requests: Iterator[Request]) -> None:
        """Serve every request.

        Raises:
            SimulationError: a prompt that does not fit, or arrivals out of order.
            ProfileError: a forward that the profile has no cost of.
        """
        service = self._service
        if service.clients is None:
            self._env.process(self._arrive(service.arrivals.at(requests, service.seed)))
        else:
            self._coming = requests
            self._let_in(service.clients)
        self._env.process(self._serve())
        self._env.run()

    def _arrive(self, arrivals: Iterator[tuple[float, Request]]) -> Process:
        for at_s, request in arrivals:
            # More than once where a difference of two times was rounded: who comes at one time comes in one tick.
            while at_s > self._env.now:
                yield self._env.timeout(at_s - self._env.now)
            self._take(request)

    def _let_in(self, clients: int) -> None:
        """Let as many clients send their next request."""
        for _ in range(clients):
            request = next(self._coming, None)
            if request is None:
                return
            self._take(request)

    def _take(self, request: Request) -> None:
        limit, now_s = self._service.queue_limit, self._env.now
        if limit is not None and self._waiting >= limit:
            self.timeline.refused(request.id, now_s)
            return
        self._inbox.append(self._replies.job(request))
        self.timeline.arrived(request.id, now_s, self._waiting)
        if self._asleep is not None:
            self._asleep.succeed()
            self._asleep = None

    @property
    def _waiting(self) -> int:
        return len(self._inbox) + self._scheduler.waiting

    def _serve(self) -> Process:
        replies = self._replies
        while True:
            inbox = EMPTY
            if self._inbox:
                inbox, self._inbox = Inbox(self._inbox), []
            tick = yield from self._timed(inbox)
            if tick is None:
                self._asleep = self._env.event()
                yield self._asleep
                continue
            for row in tick.released:
                replies.forget(row)
            self._seen(tick, self._env.now)
            if self._service.clients is not None:
                self._let_in(len(tick.released))

    def _timed(self, inbox: Inbox) -> Generator[simpy.Event, None, Tick | None]:
        """Run one tick, and note who was admitted and what was emitted when."""
        env, host = self._env, self.host
        host.verified_at_s.clear()
        work, answer = self._scheduler.tick(inbox), self._replies.answer
        try:
            action = next(work)
            while True:
                if isinstance(action, Prefill):
                    self._note_admitted(action)
                outcome = answer(action)
                seconds = host.execute(action, outcome, env.now)
                if seconds:
                    yield env.timeout(seconds)
                action = work.send(outcome)
        except StopIteration as done:
            tick: Tick | None = done.value
        if tick is not None:
            self.timeline.emitted(tick.worked.emitted, host.read_at_s, host.verified_at_s)
        return tick

    def _note_admitted(self, prefill: Prefill) -> None:
        for row in prefill.rows:
            if not row.prefilled:
                self.timeline.admitted(row.id, self._env.now, self._waiting)
