"""The time model as a discrete-event simulation: host and device as SimPy processes.

This is where things will run side by side that a recurrence cannot follow (arrivals, queues, many rows). For a single
request it must give what `simulator.two_clocks` gives, and a test holds both to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

import simpy

from calibration import Costs
from simulator.schedule import Event

Process = Generator[simpy.Event, None, None]


class Device:
    """Runs forwards one after another, in the order they were submitted."""

    def __init__(self) -> None:
        self.free_s = 0.0
        """When it will have done all that was submitted."""

    def submit(self, at_s: float, seconds: float) -> float:
        """Queue at `at_s` a forward that takes `seconds`, and return when it will be done."""
        self.free_s = max(at_s, self.free_s) + seconds
        return self.free_s


class Host:
    """Works through the events of one reply and notes where it stands after each."""

    def __init__(self, env: simpy.Environment, costs: Costs, context: int) -> None:
        self._env = env
        self._costs = costs
        self._device = Device()
        self._in_flight: deque[float] = deque()
        self._context = context
        self.passed_s: list[float] = []
        """The host's clock after each event."""

    def decode(self, events: tuple[Event, ...]) -> Process:
        """Execute the events in order."""
        for event in events:
            if event.code == "P":
                for step in range(event.size):
                    yield from self._submit(1)
                    yield from self._read(int(step < event.emitted))
            elif event.code == "B":
                yield from self._submit(1)
            elif event.code in "SV":
                yield from self._submit(event.size + 1)
                yield from self._read(event.emitted)
            else:
                yield from self._read(event.emitted)
            self.passed_s.append(self._env.now)

    def _submit(self, width: int) -> Process:
        # The current token enters the KV state with the forward; a step in flight has taken it there already.
        seconds = self._costs.device_s(width, self._context - 1 + len(self._in_flight))
        yield self._env.timeout(self._costs.launch_s)
        done_s = self._device.submit(self._env.now, seconds)
        self._in_flight.append(done_s)
        blocked_s = done_s - self._env.now - self._costs.run_ahead_s
        if blocked_s > 0:
            yield self._env.timeout(blocked_s)

    def _read(self, emitted: int) -> Process:
        done_s = max(0.0, self._in_flight.popleft() - self._env.now)
        yield self._env.timeout(done_s + self._costs.read_s + emitted * self._costs.host_work_s)
        self._context += emitted


def passed_s(events: tuple[Event, ...], prompt_tokens: int, costs: Costs) -> list[float]:
    """Return the host's clock after each event, as `TwoClocks.passed_s` does."""
    env = simpy.Environment()
    host = Host(env, costs, prompt_tokens + 1)
    env.run(env.process(host.decode(events)))
    return host.passed_s
