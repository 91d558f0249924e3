"""The oracle: the cheapest way through a recorded reply with the loop's own actions.

It knows the reply, so it is a schedule and no governor: the bound that every policy is compared with. It may verify
any part of what the lookup proposes, drain when it likes and pipeline from the first step. Dynamic programming over
the tokens emitted and what is in flight finds it; in flight, the host stands at one of two known distances before the
end of the forward, after a beginning or after a pipelined step, so three states a token are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from policies import LookupPolicy
from simulator.recorded import Recording
from simulator.schedule import Event, Schedule
from simulator.two_clocks import TwoClocks


@dataclass(frozen=True, kw_only=True)
class Oracle(LookupPolicy):
    """The cheapest sequence of rounds for each reply, found by knowing it: a bound, not a policy."""


class Reached(NamedTuple):
    """The cheapest way found to a state."""

    seconds: float
    event: Event | None
    """The last event on the way."""
    before: tuple[int, str] | None
    """The state that it came from."""


def best_schedule(recording: Recording, oracle: Oracle, clocks: TwoClocks, *, pipelined: bool = True) -> Schedule:
    """Return the fastest schedule of a reply under the lookup settings of `oracle`.

    Raises:
        ProfileError: when no forward it considers is priced at some context.
    """
    return _Search(recording, oracle, clocks, pipelined and recording.request.pipelinable).best()


State = tuple[int, str]
"""Tokens emitted, and what is in flight: nothing (`idle`), a begun step (`begun`) or a pipelined one (`pipelined`)."""


class _Search:
    """One forward pass over the states of a reply."""

    def __init__(self, recording: Recording, oracle: Oracle, clocks: TwoClocks, pipelined: bool) -> None:
        self._recording = recording
        self._lookup = recording.lookup(oracle)
        self._eligible = recording.request.eligible
        self._costs = clocks.costs
        self._step_s = clocks.costs.device_row(1)
        self._pipelined = pipelined
        self._read_s = clocks.costs.read_s
        self._work_s = clocks.costs.host_work_s
        self._reached: dict[State, Reached] = {}
        # Reading the stop is one token further than the last, unless the limit ends the reply before.
        stops = recording.request.finish == "stop" and recording.max_tokens > recording.reply_tokens
        self._last = recording.reply_tokens + stops

    def best(self) -> Schedule:
        """Walk every state in order and trace the cheapest way back."""
        recording = self._recording
        self._reached[1, "idle"] = Reached(0.0, None, None)
        if self._last > 1:
            self._costs.device_s(1, recording.prompt_tokens)
            self._costs.device_s(1, recording.prompt_tokens + self._last - 2)
        for emitted in range(1, self._last):
            self._from_idle(emitted)
            self._from_flight((emitted, "begun"), 0.0)
            self._from_flight((emitted, "pipelined"), self._read_s + self._work_s)
        return self._traced((self._last, "idle"))

    def _from_idle(self, emitted: int) -> None:
        """Step synchronously, verify every possible number of proposals, or begin to pipeline."""
        state = (emitted, "idle")
        if state not in self._reached:
            return
        costs, recording = self._costs, self._recording
        host_s = self._reached[state].seconds
        left = recording.reply_tokens - emitted
        remaining = recording.max_tokens - emitted
        context = recording.prompt_tokens + emitted
        true_tokens = self._lookup.true_tokens(context)
        most = min(self._lookup.find(context), remaining - 1) if self._eligible else 0
        for proposed in range(most + 1):
            tokens, accepted, stop = recording.land(true_tokens, proposed, left)
            spent_s = costs.launch_s + costs.device_row(proposed + 1)[context - 1] + costs.read_s
            event = Event("V" if proposed else "S", proposed, tokens, accepted, stop)
            self._offer((emitted + tokens + stop, "idle"), host_s + spent_s + tokens * self._work_s, event, state)
        if self._pipelined and remaining > 1:
            begun_s = host_s + costs.launch_s + self._behind(context)
            self._offer((emitted, "begun"), begun_s, Event("B", 0, 0, 0, False), state)

    def _from_flight(self, state: State, read_s: float) -> None:
        """Read the step in flight, with or without submitting the next.

        Args:
            state: what was reached.
            read_s: host seconds spent in it since the host stood at its known distance before the end in flight.
        """
        if state not in self._reached:
            return
        recording = self._recording
        host_s, emitted = self._reached[state].seconds, state[0]
        context = recording.prompt_tokens + emitted
        end_s = host_s - read_s - self._behind(context) + self._step_s[context - 1]
        stop = emitted == recording.reply_tokens
        tokens = 1 - stop
        # A forward behind the last token would be wasted, so it is never worth submitting.
        if emitted + 1 < self._last:
            next_s = max(host_s + self._costs.launch_s, end_s) + self._behind(context + 1)
            event = Event("P", 1, 1, 0, False)
            self._offer((emitted + 1, "pipelined"), next_s + self._read_s + self._work_s, event, state)
        code = "D" if recording.max_tokens - emitted > 1 else "R"
        read_at_s = max(host_s, end_s) + self._read_s + tokens * self._work_s
        self._offer((emitted + 1, "idle"), read_at_s, Event(code, 0, tokens, 0, stop), state)

    def _behind(self, context: int) -> float:
        """Return how long after its start the submit of the forward over `context - 1` positions returns."""
        device_s = self._step_s[context - 1]
        return device_s - min(device_s, self._costs.run_ahead_s)

    def _offer(self, state: State, seconds: float, event: Event, before: State) -> None:
        known = self._reached.get(state)
        if known is None or seconds < known.seconds:
            self._reached[state] = Reached(seconds, event, before)

    def _traced(self, state: State) -> Schedule:
        events = []
        reached = self._reached[state]
        while reached.event is not None and reached.before is not None:
            events.append(reached.event)
            reached = self._reached[reached.before]
        return Schedule(tuple(reversed(events)))
