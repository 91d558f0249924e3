"""The time model of one request in closed form: two clocks, host and device.

The host builds and launches a forward in h seconds; the device runs forwards in order, one of width w over context c
in d(w, c); reading a result costs the host r after the device is done, and every emitted token u further seconds
(detokenising, streaming). Submitting returns once no more than b seconds of device work are outstanding:

    submit   start = max(host + h, device free), end = start + d, host = max(host + h, end - b)
    read     host = max(host, end) + r + u per emitted token

After a pipelined step the host stands min(d, b) - r - u before the end of the forward in flight, wherever it came
from. So a stretch of pipelined steps is a difference of prefix sums, and costs the same however long it is.
"""

from __future__ import annotations

from itertools import accumulate

from calibration import Costs
from simulator.schedule import Event


class TwoClocks:
    """Prices schedules with the costs of one machine."""

    def __init__(self, costs: Costs, *, cold: bool = False) -> None:
        """Prepare to price schedules.

        Args:
            costs: of the machine.
            cold: every request runs in a process of its own and pays for the first use of each width, plain decoding
                as well; the device is idle then, so everything behind it is later by as much.
        """
        self.costs = costs
        self._first_use_s = dict(costs.first_use_s) if cold else {}
        self._step_s = costs.device_row(1)
        overhead_s = costs.launch_s + costs.read_s + costs.host_work_s
        ahead_s = costs.run_ahead_s
        stalls = (max(0.0, overhead_s - min(d, ahead_s)) for d in self._step_s[:-1])
        first = costs.contexts.start
        steps = [0.0] * len(self._step_s)
        for context, stall in enumerate(stalls, start=1):
            if context > first:
                steps[context] = stall + self._step_s[context]
        self._pipelined_s = list(accumulate(steps))
        """Seconds of pipelined steps up to and with each context, from an arbitrary start."""
        self._sync_s: dict[int, list[float]] = {}
        """Seconds of a synchronous forward, by width and context."""

    def decode_s(self, events: tuple[Event, ...], prompt_tokens: int) -> float:
        """Return the seconds from the prefill's token to the last; 0 when the prefill's was the only one.

        Raises:
            ProfileError: when a forward's width or context is outside what the costs stand for.
        """
        passed_s = self.passed_s(events, prompt_tokens)
        return passed_s[-1] if passed_s else 0.0

    def passed_s(self, events: tuple[Event, ...], prompt_tokens: int) -> list[float]:
        """Return the host's clock after each event; it starts when the prefill's token is read.

        Raises:
            ProfileError: when a forward's width or context is outside what the costs stand for.
        """
        costs = self.costs
        launch_s, read_s, work_s, ahead_s = costs.launch_s, costs.read_s, costs.host_work_s, costs.run_ahead_s
        step_s, pipelined_s, sync_s = self._step_s, self._pipelined_s, self._sync_s
        context = prompt_tokens + 1
        host_s = flight_s = 0.0
        passed_s = []
        if events:
            # A context below the declared ones is refused here; one beyond them has no entry in any row.
            costs.device_s(1, prompt_tokens)
        try:
            for code, count, emitted, _, _ in events:
                if code == "V" or code == "S":
                    width = count + 1
                    row_s = sync_s[width] if width in sync_s else self._row_s(width)
                    host_s += row_s[context - 1] + emitted * work_s
                elif code == "P":
                    last_s = step_s[context + count - 1]
                    flight_s = max(host_s + launch_s, flight_s) + step_s[context]
                    if count > 1:
                        flight_s += pipelined_s[context + count - 1] - pipelined_s[context]
                    host_s = flight_s - min(last_s, ahead_s) + read_s
                    if emitted:
                        host_s += work_s
                elif code == "B":
                    begun_s = step_s[context - 1]
                    flight_s = host_s + launch_s + begun_s
                    host_s += launch_s + begun_s - min(begun_s, ahead_s)
                else:
                    host_s = max(host_s, flight_s) + read_s + emitted * work_s
                context += emitted
                passed_s.append(host_s)
        except IndexError:
            costs.device_s(1, costs.contexts.stop)
            raise
        return self._later(events, passed_s) if self._first_use_s else passed_s

    def _later(self, events: tuple[Event, ...], passed_s: list[float]) -> list[float]:
        """Charge the first use of every width."""
        left_s = dict(self._first_use_s)
        later_s, found = 0.0, []
        for event, seconds in zip(events, passed_s, strict=True):
            if event.code in "SVB":
                later_s += left_s.pop(event.size + 1 if event.code == "V" else 1, 0.0)
            found.append(seconds + later_s)
        return found

    def _row_s(self, width: int) -> list[float]:
        """Return the seconds of a synchronous forward by context, computed once a width."""
        overhead_s = self.costs.launch_s + self.costs.read_s
        row_s = self._sync_s[width] = [device_s + overhead_s for device_s in self.costs.device_row(width)]
        return row_s
