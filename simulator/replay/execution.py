"""The decode loop on an engine: the steps that a policy asks for, done for real and timed one by one.

Forced, the tokens are the recording's and only the times are the engine's, so that the rounds are exactly those that
were simulated. Free, the engine's own tokens decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from calibration.engine import Engine
from policies import UNLIMITED, Drafter, LookupPolicy, NgramIndex, NoLookup, Policy, Prices
from simulator.schedule import Event, Schedule
from simulator.stream import Step, decode
from traces import Request

BEYOND = 64
"""Tokens that a free reply may go on for beyond a recorded one that no limit ended."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What an engine did for one request under one policy."""

    schedule: Schedule
    reply: tuple[int, ...]
    """The tokens emitted, the prefill's included."""
    seconds: tuple[float, ...]
    """The host's time for each step, from the end of the one before; together the whole decode time."""


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

    def __init__(self, request: Request, eos: frozenset[int]) -> None:
        self._eos = eos
        self._end = len(request.reply) + (0 if request.finish == "guard" else BEYOND)

    def token(self, place: int, chosen: int) -> int | None:
        """Return what was chosen, None for a stop."""
        return None if chosen in self._eos else chosen

    def ended(self, emitted: int) -> bool:
        """Return whether the reply is as long as anybody waits for."""
        return emitted == self._end


class _Loop:
    """One reply in progress."""

    def __init__(self, engine: Engine, request: Request, word: Script | Choice, first: int) -> None:
        self.engine = engine
        self.word = word
        self.seen: list[int] = [*request.prompt.tolist(), first]
        self.start = len(request.prompt)

    def do(self, step: Step, proposal: Callable[[int], list[int]]) -> Event:
        """Do one step and say what came out."""
        code, count = step
        engine = self.engine
        if code == "B":
            engine.submit(self.seen[-1])
            return Event(code, count, 0, 0, False)
        if code in "SV":
            proposed = proposal(count) if code == "V" else []
            chosen = engine.forward([self.seen[-1], *proposed])
            event = self._walk(step, chosen, proposed)
            if event.accepted < len(proposed):
                engine.trim(len(proposed) - event.accepted)
            return event
        if code == "P":
            engine.submit()
        return self._walk(step, [engine.read().token], [])

    def _walk(self, step: Step, chosen: Sequence[int], proposed: Sequence[int]) -> Event:
        """Emit position by position, and go on only where the proposal was right."""
        emitted = accepted = 0
        for place, token in enumerate(chosen):
            said = self.word.token(len(self.seen) - self.start, token)
            if said is None:
                return Event(*step, emitted, accepted, True)
            self.seen.append(said)
            emitted += 1
            if self.ended or place == len(proposed) or proposed[place] != said:
                break
            accepted += 1
        return Event(*step, emitted, accepted, False)

    @property
    def ended(self) -> bool:
        return self.word.ended(len(self.seen) - self.start)


def execute(
    engine: Engine, request: Request, policy: Policy, prices: Prices, word: Script | Choice, *, first: int
) -> Execution:
    """Decode one request on an engine that holds its prompt, and leave the engine as it was found.

    Args:
        engine: its KV state holds the prompt and nothing else, and every result is read.
        request: what to decode.
        policy: what proposes.
        prices: what a policy may know of the machine; `host_work_s`, if any, is spent for real.
        word: whose tokens count.
        first: the prefill's token.
    """
    loop = _Loop(engine, request, word, first)
    index = _index(policy, loop.seen)
    drafter = Drafter(policy.governor(prices), index, len(loop.seen)) if request.eligible else None
    steps = decode(drafter, limit(request), pipelined=request.pipelinable, pipeline_after=policy.pipeline_after)
    work_s = getattr(prices, "host_work_s", 0.0)
    events: list[Event] = []
    passed_s = [engine.clock_s()]
    try:
        step = next(steps) if not loop.ended else None
        while step is not None:
            event = loop.do(step, lambda count: index.proposal(len(loop.seen), count))
            if work_s and event.emitted:
                engine.work(event.emitted * work_s)
            passed_s.append(engine.clock_s())
            events.append(event)
            step = steps.send((event.emitted, event.accepted, event.stop or loop.ended))
    except StopIteration:
        pass
    engine.trim(engine.context - len(request.prompt))
    seconds = tuple(after - before for before, after in pairwise(passed_s))
    asked = (drafter.paused_rounds, drafter.shadow_confirmations) if drafter else (0, 0)
    return Execution(Schedule(tuple(events), *asked), tuple(loop.seen[loop.start :]), seconds)


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
