"""The decode loop on an engine: the steps that a policy asks for, done for real and timed one by one.

Forced, the tokens are the recording's and only the times are the engine's, so that the rounds are exactly those that
were simulated. Free, the engine's own tokens decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration import Costs
from calibration.engine import Engine
from policies import UNLIMITED, Drafter, LookupPolicy, NgramIndex, NoLookup, Policy
from simulator.schedule import Event, Schedule
from simulator.stream import Step, decode
from traces import Request

BEYOND = 64
"""Tokens that a free reply may go on for beyond a recorded one that no limit ended, where the profile has costs."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What an engine did for one request under one policy."""

    schedule: Schedule
    reply: tuple[int, ...]
    """The tokens emitted, the prefill's included."""
    seconds: tuple[float, ...]
    """The host's time for each step, from the end of the one before; together the whole decode time."""


LEAD_IN = 1
"""Steps that a pipelined reply takes, without being timed, before its turn goes on."""


def limit(request: Request) -> int:
    """Return how many tokens a reply may have."""
    return UNLIMITED if request.max_tokens is None else request.max_tokens


class Script:
    """The recording's word on what every forward said."""

    def __init__(self, request: Request) -> None:
        self._reply: list[int] = request.reply.tolist()
        self._guard = request.finish == "guard"

    def token(self, place: int, chosen: int) -> int | None:
        """Return the token of that place in the reply whatever was chosen, None for the stop."""
        return self._reply[place] if place < len(self._reply) else None

    def ended(self, emitted: int) -> bool:
        """Return whether somebody outside ends the reply at so many tokens."""
        return self._guard and emitted == len(self._reply)


class Choice:
    """The engine's own word."""

    def __init__(self, request: Request, eos: frozenset[int], beyond: int = BEYOND) -> None:
        """Say what decodes, and for how many tokens it may go on where the recorded reply stopped by itself."""
        self._eos = eos
        self._end = len(request.reply) + {"guard": 0, "stop": beyond}.get(request.finish, BEYOND)

    def token(self, place: int, chosen: int) -> int | None:
        """Return what was chosen, None for a stop."""
        return None if chosen in self._eos else chosen

    def ended(self, emitted: int) -> bool:
        """Return whether the reply is as long as anybody waits for."""
        return emitted == self._end


class Reply:
    """One request being decoded on an engine under one policy.

    Several may take turns on one engine that holds their prompt: what positions hold is the same for all that are
    forced along one recording, so each only needs the KV state to be as long as it left it, and, where it had a step in
    flight, a step or two to be in flight again before its time goes on.
    """

    def __init__(
        self,
        engine: Engine,
        request: Request,
        policy: Policy,
        costs: Costs,
        word: Script | Choice,
        *,
        first: int,
    ) -> None:
        """Get ready; nothing is decoded yet.

        Args:
            engine: its KV state holds the prompt, and every result is read.
            request: what to decode.
            policy: what proposes.
            costs: what a policy may know of the machine; its `host_work_s` is spent for real.
            word: whose tokens count.
            first: the prefill's token.
        """
        began_s = engine.clock_s()
        self._engine = engine
        self._word = word
        self._seen: list[int] = [*request.prompt.tolist(), first]
        self._start = len(request.prompt)
        self._index = _index(policy, self._seen)
        self._drafter = Drafter(policy.governor(costs), self._index, len(self._seen)) if request.eligible else None
        self._steps = decode(
            self._drafter, limit(request), pipelined=request.pipelinable, pipeline_after=policy.pipeline_after
        )
        self._work_s: float = costs.host_work_s
        self._events: list[Event] = []
        self._seconds: list[float] = []
        self._in_flight = False
        self._step = None if self._ended else next(self._steps, None)
        self._asking_s = engine.clock_s() - began_s

    @property
    def finished(self) -> bool:
        """Whether nothing is left to decode."""
        return self._step is None

    @property
    def execution(self) -> Execution:
        """What the engine did so far."""
        drafter = self._drafter
        asked = (drafter.paused_rounds, drafter.shadow_confirmations) if drafter else (0, 0)
        return Execution(Schedule(tuple(self._events), *asked), tuple(self._seen[self._start :]), tuple(self._seconds))

    def go_on(self, tokens: int) -> None:
        """Decode until so many further tokens are emitted, or the end; a step that emits more is not cut."""
        self._resume()
        enough = len(self._seen) + tokens
        before_s = self._engine.clock_s() - self._asking_s
        while self._step is not None and len(self._seen) < enough:
            event = self._do(self._step)
            if self._work_s and event.emitted:
                self._engine.work(event.emitted * self._work_s)
            after_s = self._engine.clock_s()
            self._events.append(event)
            self._seconds.append(after_s - before_s)
            before_s = after_s
            try:
                self._step = self._steps.send((event.emitted, event.accepted, event.stop or self._ended))
            except StopIteration:
                self._step = None
        # What the policy was asked last is the host's time too, where no forward in flight hides it.
        self._asking_s = 0.0 if self._in_flight else self._engine.clock_s() - before_s

    def _resume(self) -> None:
        """Make the KV state as long as it was, and begin to pipeline again if a step was in flight."""
        engine = self._engine
        known = len(self._seen) - 1
        led = min(LEAD_IN, known - self._start) if self._in_flight else 0
        engine.trim(max(0, engine.context - (known - led)))
        if engine.context < known - led:
            engine.fill(self._seen[engine.context : known - led])
        if not self._in_flight:
            return
        engine.submit(self._seen[known - led])
        for _ in range(led):
            engine.submit()
            engine.read()
            if self._work_s:
                engine.work(self._work_s)

    def _do(self, step: Step) -> Event:
        """Do one step and say what came out."""
        code, count = step
        engine = self._engine
        if code == "B":
            engine.submit(self._seen[-1])
            self._in_flight = True
            return Event(code, count, 0, 0, False)
        if code in "SV":
            proposed = self._index.proposal(len(self._seen), count) if code == "V" else []
            chosen = engine.forward([self._seen[-1], *proposed])
            event = self._walk(step, chosen, proposed)
            if event.accepted < len(proposed):
                engine.trim(len(proposed) - event.accepted)
            return event
        if code == "P":
            engine.submit()
        self._in_flight = code == "P"
        return self._walk(step, [engine.read().token], [])

    def _walk(self, step: Step, chosen: Sequence[int], proposed: Sequence[int]) -> Event:
        """Emit position by position, and go on only where the proposal was right."""
        emitted = accepted = 0
        for place, token in enumerate(chosen):
            said = self._word.token(len(self._seen) - self._start, token)
            if said is None:
                return Event(*step, emitted, accepted, True)
            self._seen.append(said)
            emitted += 1
            if self._ended or place == len(proposed) or proposed[place] != said:
                break
            accepted += 1
        return Event(*step, emitted, accepted, False)

    @property
    def _ended(self) -> bool:
        return self._word.ended(len(self._seen) - self._start)


class _Nothing(NoLookup):
    """The lookup of a policy that proposes nothing, while nobody knows the reply."""

    def proposal(self, context: int, most: int) -> list[int]:
        """Return nothing."""
        return []


def _index(policy: Policy, seen: Sequence[int]) -> NgramIndex | _Nothing:
    if not isinstance(policy, LookupPolicy):
        return _Nothing(0)
    return NgramIndex(
        seen,
        ngram_max=policy.ngram_max,
        ngram_min=policy.ngram_min,
        max_draft=policy.max_draft,
        match=policy.match,
    )
