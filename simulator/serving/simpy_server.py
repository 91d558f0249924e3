"""A server on a clock: requests that arrive, a host that schedules, and a device that runs what it submits.

The time model is that of one request (`simulator.two_clocks`), with the forwards of a server. Requests arrive in a
process of their own; the host takes in what has arrived when a tick begins, and sleeps while there is nothing to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence

import simpy

from calibration import ServerCosts
from policies import Policy, Prices
from simulator.serving.actions import Action, Outcome, Prefill, Read, Step, Submit, Unwind, Verify, Warm
from simulator.serving.recorded import RecordedReplies
from simulator.serving.row import TOKEN, Job, Row
from simulator.serving.scheduler import Inbox, Scheduler
from simulator.serving.service import Service
from simulator.serving.tick import Tick
from simulator.serving.timeline import Timeline
from simulator.simpy_clocks import Device
from traces import Request

Process = Generator[simpy.Event, None, None]


class Host:
    """Lets the time of every action pass."""

    def __init__(self, env: simpy.Environment, costs: ServerCosts) -> None:
        self.read_at_s = 0.0
        """When the last step or prefill was read."""
        self.verified_at_s: dict[str, float] = {}
        """When each verify since somebody cleared this was read."""
        self.warm_up_s = 0.0
        """Seconds spent on the first verify of every width."""
        self.wasted = 0
        """Forwards whose results were thrown away."""
        self._env = env
        self._costs = costs
        self._device = Device(env)
        self._in_flight: deque[float] = deque()
        self._rows: Sequence[Row] = ()
        self._prompts = 0
        """Prompt tokens of those rows."""

    def execute(self, action: Action, outcome: Outcome) -> Process:
        """Pass the time of one action, of which `outcome` will be told when it is over."""
        match action:
            case Submit(rows):
                yield from self._submit(self._step_s(rows))
            case Read(rows):
                yield self._read(_emitted(rows, outcome))
                self.read_at_s = self._env.now
            case Step(rows):
                yield from self._submit(self._step_s(rows))
                yield self._read(_emitted(rows, outcome))
                self.read_at_s = self._env.now
            case Verify(row, proposed):
                yield from self._submit(self._costs.verify_s(proposed + 1, row.context - 1))
                yield self._read(outcome.get(row, TOKEN).emitted)
                self.verified_at_s[row.id] = self._env.now
            case Unwind(_, positions):
                self.wasted += positions
                while self._in_flight:
                    yield self._env.timeout(max(0.0, self._in_flight.popleft() - self._env.now))
            case Prefill(rows, tokens):
                yield self._env.timeout(self._prefill_s(rows, tokens))
                self.read_at_s = self._env.now
            case Warm(row, max_draft):
                since_s = self._env.now
                for width in range(2, max_draft + 2):
                    yield from self._submit(self._costs.verify_s(width, row.context - 1))
                    yield self._read(0)
                self.warm_up_s += self._env.now - since_s

    def _submit(self, seconds: float) -> Process:
        """Launch a forward, and wait while too much work is outstanding."""
        costs = self._costs.costs
        if costs.launch_s:
            yield self._env.timeout(costs.launch_s)
        self._in_flight.append(self._device.submit(seconds))
        ahead_s = self._device.outstanding_s - costs.run_ahead_s
        if ahead_s > 0:
            yield self._env.timeout(ahead_s)

    def _read(self, emitted: int) -> simpy.Event:
        """Return the event of having read the oldest forward in flight and worked on the tokens it emitted."""
        costs, env = self._costs.costs, self._env
        left_s = max(0.0, self._in_flight.popleft() - env.now)
        return env.timeout(left_s + costs.read_s + emitted * costs.host_work_s)

    def _step_s(self, rows: Sequence[Row]) -> float:
        """Return what a step of these rows takes; the last token of each enters its KV state with it."""
        if rows is not self._rows:
            self._rows = rows
            self._prompts = sum(row.job.prompt_tokens for row in rows)
        contexts = self._prompts + sum([row.generated for row in rows])
        return self._costs.step_s(len(rows), contexts // len(rows) - 1 + len(self._in_flight))

    def _prefill_s(self, rows: Sequence[Row], tokens: int) -> float:
        """Return what a chunk takes: its part of the whole prompt, or that of all prompts padded to the longest."""
        before = rows[0].prefilled
        after = min(before + tokens, rows[0].job.prompt_tokens) if len(rows) == 1 else tokens * len(rows)
        return self._costs.prefill_s(after) - self._costs.prefill_s(before)


class SimpyServer:
    """Serves recorded requests on a clock."""

    def __init__(
        self, policy: Policy, prices: Prices, costs: ServerCosts, service: Service, seen: Callable[[Tick, float], None]
    ) -> None:
        """Set a server up.

        Args:
            policy: what to propose and when.
            prices: what a policy may know of the machine.
            costs: what forwards cost.
            service: the server and who uses it.
            seen: called with every tick when it is over, and the seconds on the clock.
        """
        self.timeline = Timeline()
        self._env = simpy.Environment()
        self.host = Host(self._env, costs)
        self._service = service
        self._replies = RecordedReplies(policy, prices, service.server)
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
            if at_s > self._env.now:
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
            arrived, self._inbox = self._inbox, []
            tick = yield from self._timed(Inbox(arrived))
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
        host = self.host
        host.verified_at_s.clear()
        work, answer = self._scheduler.tick(inbox), self._replies.answer
        try:
            action = next(work)
            while True:
                if isinstance(action, Prefill):
                    self._note_admitted(action)
                outcome = answer(action)
                yield from host.execute(action, outcome)
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


def _emitted(rows: Sequence[Row], outcome: Outcome) -> int:
    return sum(outcome.get(row, TOKEN).emitted for row in rows) if outcome else len(rows)
