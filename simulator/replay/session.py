"""A replay session: plain decoding, plain decoding again and every policy, taking turns within every repeat."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibration import Costs, this_machine
from calibration.engine import Engine, Sampler
from policies import UNLIMITED, LookupPolicy, Policy
from policies.plain import Plain
from simulator.replay import parity
from simulator.replay.errors import ReplayError
from simulator.replay.execution import BEYOND, Choice, Reply, Script
from simulator.replay.parity import Comparison
from simulator.replay.robust import Times
from simulator.replay.store import Line, Store
from simulator.schedule import Schedule, read_codes
from traces import Request

GREEDY = Sampler()
PLAIN = "plain decoding"
AGAIN = "plain decoding again"
"""The null arm: what it differs from the first by, nothing but noise explains."""

TURN_TOKENS = 8
"""Tokens of a turn: few enough that all arms have had one before a disturbance of some seconds has passed."""

Mode = Literal["forced", "free"]


@dataclass(frozen=True)
class Setup:
    """What a session measures."""

    trace: str
    """What a report calls the trace."""
    model: str
    """As `--model` was given."""
    dtype: str | None
    requests: tuple[Request, ...]
    policies: tuple[Policy, ...]
    costs: Costs
    """What the policies may know of the machine, and the host's work for every token."""
    mode: Mode = "forced"
    repeats: int = 5
    seed: int = 0
    """Of the order of turns."""
    sampler: Sampler = GREEDY

    @property
    def arms(self) -> dict[str, Policy]:
        """The policy of every arm by its name."""
        return {PLAIN: Plain(), AGAIN: Plain(), **{str(policy): policy for policy in self.policies}}

    @property
    def turn_tokens(self) -> int:
        """Tokens that an arm decodes before the next takes its turn.

        Free replies need not be the same, and then each needs its own KV state, so they are decoded whole.
        """
        return TURN_TOKENS if self.mode == "forced" else UNLIMITED

    @property
    def widest(self) -> int:
        """The widest forward that may be needed."""
        return 1 + max((one.max_draft for one in self.policies if isinstance(one, LookupPolicy)), default=0)

    def beyond(self, request: Request) -> int:
        """Return for how many tokens a free reply may go on beyond a recorded one that the model ended itself.

        No further than the profile knows what forwards cost, but the one that may stand where the recording stopped.
        """
        room = self.costs.contexts[-1] - len(request.prompt) - len(request.reply) - self.widest
        return max(1, min(BEYOND, room))

    def positions(self, request: Request) -> int:
        """Return how many positions the KV state holds at most."""
        beyond = self.beyond(request) if self.mode == "free" and request.finish == "stop" else 0
        return len(request.prompt) + len(request.reply) + beyond + self.widest

    def document(self) -> dict[str, Any]:
        """Return what two sessions must share to be continued as one; the number of repeats is not part of it.

        The figures of the profile are, where a policy decides by them.
        """
        prices = repr(replace(self.costs, name="", notes=())) if any(one.needs_prices for one in self.policies) else ""
        said = hashlib.sha256()
        for request in self.requests:
            said.update(request.id.encode() + request.prompt.tobytes() + request.reply.tobytes())
        return {
            "trace": self.trace,
            "said_sha256": said.hexdigest(),
            "model": self.model,
            "dtype": self.dtype,
            "policies": {str(policy): policy.settings for policy in self.policies},
            "profile": self.costs.name,
            "mode": self.mode,
            "seed": self.seed,
            "sampler": self.sampler.provenance(),
            "host_work_s": self.costs.host_work_s,
            # What bounds a reply that goes on beyond its recording.
            "last_context": self.costs.contexts[-1] if self.mode == "free" else None,
            "prices_sha256": hashlib.sha256(prices.encode()).hexdigest() if prices else None,
        }


class Session:
    """What was measured so far, and what is still to be."""

    def __init__(self, setup: Setup, store: Store) -> None:
        self.setup = setup
        self._store = store
        store.begin(setup.document())

    @property
    def engine(self) -> dict[str, Any]:
        """What the engine that was measured says of itself."""
        return self._store.engine

    @property
    def left(self) -> int:
        """How many runs are still to be measured."""
        return sum(1 for request in self.setup.requests for _ in self._missing(request))

    @property
    def unfinished(self) -> tuple[Request, ...]:
        """Those of which a run is missing, or of whose free replies nobody knows yet how they compare."""
        return tuple(
            request
            for request in self.setup.requests
            if any(True for _ in self._missing(request)) or self._uncompared(request)
        )

    @property
    def requests(self) -> tuple[Request, ...]:
        """Those of which at least one repeat is complete."""
        return tuple(request for request in self.setup.requests if self.complete(request))

    @property
    def repeats(self) -> int:
        """Repeats that are complete for all of `requests`."""
        return min((self.complete(request) for request in self.requests), default=0)

    def complete(self, request: Request) -> int:
        """Return the repeats of a request in which every arm was measured."""
        repeat = 0
        while all((request.id, repeat, arm) in self._store.lines for arm in self.setup.arms):
            repeat += 1
        return repeat

    def line(self, request: Request, arm: str, repeat: int = 0) -> Line:
        """Return one measured run."""
        return self._store.lines[request.id, repeat, arm]

    def schedule(self, request: Request, arm: str) -> Schedule:
        """Return what an arm did."""
        line = self.line(request, arm)
        return Schedule(read_codes(line.codes), line.paused_rounds, line.shadow_confirmations)

    def times(self, request: Request, arm: str) -> Times:
        """Return an arm's step times over the complete repeats.

        Raises:
            ReplayError: two repeats did not do or say the same, which equal runs of one engine always do.
        """
        lines = [self.line(request, arm, repeat) for repeat in range(self.complete(request))]
        first = self.line(request, PLAIN) if arm == AGAIN else lines[0]
        for repeat, line in enumerate(lines):
            if (line.codes, line.reply) != (first.codes, first.reply):
                what = "took other steps" if line.codes != first.codes else "said something else"
                raise ReplayError(
                    f"request {request.id!r}: {arm} {what} in repeat {repeat} than before; "
                    "the engine does not repeat itself"
                )
        return np.array([line.seconds for line in lines], dtype=np.float64)

    def comparison(self, request: Request, policy: Policy) -> Comparison | None:
        """Return how a free reply compared; None when forced, or as long as nobody knows."""
        return self._store.comparisons.get((request.id, str(policy)))

    def prefill_s(self, request: Request) -> float:
        """Return the measured seconds of a request's prefill."""
        return self._store.prefills[request.id]

    def _uncompared(self, request: Request) -> list[Policy]:
        if self.setup.mode == "forced":
            return []
        return [policy for policy in self.setup.policies if self.comparison(request, policy) is None]

    def _missing(self, request: Request) -> Iterator[tuple[int, str]]:
        for repeat in range(self.setup.repeats):
            for arm in self.setup.arms:
                if (request.id, repeat, arm) not in self._store.lines:
                    yield repeat, arm


def measure(session: Session, open_engine: Callable[[], Engine], done: Callable[[str], None]) -> None:
    """Measure what is missing; runs are kept as soon as their repeat of a request is done.

    Args:
        session: what to measure, and where it is kept.
        open_engine: called once, and only if something is missing.
        done: called with the request's id after every run.

    Raises:
        EngineError: the model cannot roll back, or a context is longer than it takes.
        ReplayError: a run cannot be kept, or another process is keeping its own in the same place.
    """
    setup = session.setup
    if not session.unfinished:
        return
    with session._store.alone():
        unfinished = session.unfinished
        if not unfinished:
            return  # another process has just measured it
        engine = open_engine()
        engine.check_rollback(max(map(setup.positions, unfinished)))
        # The library that multiplies is no part of the engine, but its times are not to be mixed with another's.
        session._store.said_by({**engine.provenance(), "blas": this_machine.blas()})
        warm(engine, setup, unfinished[0])
        for request in unfinished:
            _measure(session, engine, request, done)


def _measure(session: Session, engine: Engine, request: Request, done: Callable[[str], None]) -> None:
    setup, store = session.setup, session._store
    began_s = engine.clock_s()
    engine.prefill(request.prompt.tolist(), setup.sampler)
    first = engine.read().token
    store.prefilled(request.id, engine.clock_s() - began_s)
    word: Script | Choice = Script(request)
    if setup.mode == "forced":
        first = int(request.reply[0])
    else:
        word = Choice(request, engine.eos, setup.beyond(request))
        if first in engine.eos:
            raise ReplayError(f"request {request.id!r}: the model ends its reply before the first token")
    missing: dict[int, list[str]] = {}
    for repeat, arm in session._missing(request):
        missing.setdefault(repeat, []).append(arm)
    for repeat, arms in missing.items():
        replies = [Reply(engine, request, setup.arms[arm], setup.costs, word, first=first) for arm in arms]
        _take_turns(replies, setup.turn_tokens, random.Random(f"{setup.seed} {request.id} {repeat}"))
        for arm, reply in zip(arms, replies, strict=True):
            store.keep((request.id, repeat, arm), reply.execution, setup.mode == "free")
            done(request.id)
    engine.trim(engine.context - len(request.prompt))
    _compare(session, engine, request)


def _take_turns(replies: Sequence[Reply], tokens: int, order: random.Random) -> None:
    """Decode replies side by side, in random order in every turn, so that whatever drifts hits all of them alike."""
    while going := [reply for reply in replies if not reply.finished]:
        order.shuffle(going)
        for reply in going:
            reply.go_on(tokens)


def _compare(session: Session, engine: Engine, request: Request) -> None:
    prompt: list[int] = request.prompt.tolist()
    plain = session.line(request, PLAIN).reply
    for policy in session._uncompared(request):
        reply = session.line(request, str(policy)).reply
        events = session.schedule(request, str(policy)).steps
        with_plain, with_recording = (
            parity.compare(engine, prompt, said, reply, events) for said in (plain, request.reply.tolist())
        )
        session._store.judged(request.id, str(policy), Comparison(with_plain, with_recording))


def warm(engine: Engine, setup: Setup, request: Request) -> None:
    """Run every width once, and the pipeline for a few steps, so that nobody is the first to."""
    prompt: Sequence[int] = request.prompt.tolist()
    engine.prefill(prompt, setup.sampler)
    engine.read()
    for width in range(1, setup.widest + 1):
        engine.forward([prompt[-1]] * width)
        engine.trim(width)
    engine.submit(prompt[-1])
    for _ in range(4):
        engine.submit()
        engine.read()
    engine.trim(engine.context - len(prompt))
