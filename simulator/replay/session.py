"""A replay session: plain decoding, plain decoding again and every policy, taking turns within every repeat."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibration import Costs, this_machine
from calibration.engine import Engine, EngineError, Sampler
from calibration.resources import enough_memory
from policies import UNLIMITED, LookupPolicy, Policy
from policies.plain import Plain
from simulator.replay import parity
from simulator.replay.errors import ReplayError, StoppedError
from simulator.replay.execution import BEYOND, Choice, Reply, Script
from simulator.replay.parity import Comparison, severity
from simulator.replay.robust import Times
from simulator.replay.store import Line, Store
from simulator.schedule import Schedule
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
    """What a report calls the trace; no part of what makes two sessions one, for a trace may lie elsewhere."""
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
        ends = [(one.id, one.finish, one.max_tokens, one.eligible, one.pipelinable) for one in self.requests]
        return {
            "said_sha256": said.hexdigest(),
            "ends_sha256": hashlib.sha256(repr(ends).encode()).hexdigest(),
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
        return sum(len(self._missing(request)) for request in self.setup.requests) * len(self.setup.arms)

    @property
    def unfinished(self) -> tuple[Request, ...]:
        """Those of which a run is missing, or of whose free replies nobody knows yet how they compare."""
        return tuple(request for request in self.setup.requests if self._missing(request) or self._uncompared(request))

    @property
    def requests(self) -> tuple[Request, ...]:
        """Those of which at least one repeat is complete."""
        return tuple(request for request in self.setup.requests if self._complete(request))

    @property
    def repeats(self) -> int:
        """Repeats whose times count for all of `requests`."""
        return min((len(self.alike(request)) for request in self.requests), default=0)

    def alike(self, request: Request) -> list[int]:
        """Return the repeats of a request whose times count: those in which every arm did and said the same.

        All do where the engine repeats itself. Where it does not, times of different steps cannot be taken together,
        and the outcome that most repeats share stands for all.
        """
        found: dict[tuple[tuple[str, tuple[int, ...]], ...], list[int]] = {}
        for repeat in range(self._complete(request)):
            lines = (self._store.lines[request.id, repeat, arm] for arm in self.setup.arms)
            found.setdefault(tuple((line.codes, line.reply) for line in lines), []).append(repeat)
        return max(found.values(), key=len, default=[])

    def unlike(self, request: Request) -> int:
        """Return how many complete repeats of a request do not count."""
        return self._complete(request) - len(self.alike(request))

    def line(self, request: Request, arm: str) -> Line:
        """Return one measured run of an arm that stands for all that count."""
        return self._store.lines[request.id, self.alike(request)[0], arm]

    def said(self, request: Request, arm: str) -> list[Line]:
        """Return one measured run for each different reply of an arm, that of the repeats that count first.

        Plain decoding's are those of both its arms.
        """
        arms = (PLAIN, AGAIN) if arm == PLAIN else (arm,)
        lines = [
            self._store.lines[request.id, repeat, one] for one in arms for repeat in range(self._complete(request))
        ]
        return list({line.reply: line for line in [*lines, self.line(request, arm)][::-1]}.values())

    def schedule(self, request: Request, arm: str) -> Schedule:
        """Return what an arm did."""
        return self.line(request, arm).schedule

    def times(self, request: Request, arm: str) -> Times:
        """Return an arm's step times, a row for each repeat that counts."""
        lines = [self._store.lines[request.id, repeat, arm] for repeat in self.alike(request)]
        return np.array([line.seconds for line in lines], dtype=np.float64)

    def scale(self, request: Request, arm: str) -> float:
        """Return how many tokens plain decoding said for each of an arm's, that of the prefill left out.

        Times of replies that became different are compared by it, token for token.
        """
        plain, own = (max(1, len(self.line(request, one).reply) - 1) for one in (PLAIN, arm))
        return plain / own

    def comparison(self, request: Request, arm: str) -> Comparison | None:
        """Return how an arm's free replies compared, the worst of its repeats.

        None when forced, as long as nobody knows, and of plain decoding that repeats itself.
        """
        return self._store.comparisons.get((request.id, arm, self._compared(request, arm)))

    @property
    def notes(self) -> list[str]:
        """Return what a report must say of the repeats."""
        return [
            f"request {request.id!r}: {count} of {self._complete(request)} repeats do not count, because the engine "
            "did not repeat itself"
            for request in self.requests
            if (count := self.unlike(request))
        ]

    def prefill_s(self, request: Request) -> float:
        """Return the measured seconds of a request's prefill."""
        return self._store.prefills[request.id]

    def _complete(self, request: Request) -> int:
        repeat = 0
        while self._whole(request, repeat):
            repeat += 1
        return repeat

    def _whole(self, request: Request, repeat: int) -> bool:
        return all((request.id, repeat, arm) in self._store.lines for arm in self.setup.arms)

    def _uncompared(self, request: Request) -> list[str]:
        if self.setup.mode == "forced" or not self._complete(request):
            return []
        arms = [*map(str, self.setup.policies), *([PLAIN] if len(self.said(request, PLAIN)) > 1 else [])]
        return [arm for arm in arms if self.comparison(request, arm) is None]

    def _compared(self, request: Request, arm: str) -> str:
        """Return what a comparison stands for: plain decoding's reply and the arm's, by a hash."""
        said = hashlib.sha256(repr(self.line(request, PLAIN).reply).encode())
        for line in self.said(request, arm):
            said.update(repr(line.reply).encode())
        return said.hexdigest()

    def _missing(self, request: Request) -> list[int]:
        """Return the repeats to measure; one that was cut is measured again whole, for its arms take turns."""
        return [repeat for repeat in range(self.setup.repeats) if not self._whole(request, repeat)]


def measure(session: Session, open_engine: Callable[[], Engine], done: Callable[[str], None]) -> None:
    """Measure what is missing; runs are kept as soon as their repeat of a request is done.

    Args:
        session: what to measure, and where it is kept.
        open_engine: called once, and only if something is missing.
        done: called with the request's id after every run.

    Raises:
        EngineError: the model cannot roll back, or a context is longer than it takes.
        ReplayError: another process is keeping its own runs in the same place, or none can be kept.
        StoppedError: something went wrong on the way; what was measured before is kept.
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
        session._store.said_by(said_by(engine))
        warm(engine, setup, unfinished[0])
        silent = []
        try:
            with enough_memory():
                silent = [request.id for request in unfinished if not _measured(session, engine, request, done)]
        except (EngineError, ReplayError) as error:
            raise StoppedError(str(error)) from error
        if silent:
            names = ", ".join(map(repr, silent))
            raise StoppedError(f"request {names}: the model ends its reply before the first token")


def said_by(engine: Engine) -> dict[str, object]:
    """Return what an engine says of itself, and whose times it makes: the library that multiplies, and the machine."""
    machine = this_machine.machine()
    return {**engine.provenance(), "blas": this_machine.blas(), "chip": machine.chip, "cores": machine.cores}


def _measured(session: Session, engine: Engine, request: Request, done: Callable[[str], None]) -> bool:
    """Measure what is missing of a request; return whether the model said anything at all."""
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
            return False
    for repeat in session._missing(request):
        replies = [Reply(engine, request, policy, setup.costs, word, first=first) for policy in setup.arms.values()]
        _take_turns(replies, setup.turn_tokens, random.Random(f"{setup.seed} {request.id} {repeat}"))
        for arm, reply in zip(setup.arms, replies, strict=True):
            store.keep((request.id, repeat, arm), reply.execution, setup.mode == "free")
            done(request.id)
    engine.trim(engine.context - len(request.prompt))
    _compare(session, engine, request)
    return True


def _take_turns(replies: Sequence[Reply], tokens: int, order: random.Random) -> None:
    """Decode replies side by side, in random order in every turn, so that whatever drifts hits all of them alike."""
    while going := [reply for reply in replies if not reply.finished]:
        order.shuffle(going)
        for reply in going:
            reply.go_on(tokens)


def _compare(session: Session, engine: Engine, request: Request) -> None:
    """Compare every different reply of every arm, plain decoding's with its own where it does not repeat itself."""
    prompt: list[int] = request.prompt.tolist()
    replies = session.line(request, PLAIN).reply, request.reply.tolist()
    for arm in session._uncompared(request):
        lines = session.said(request, arm)
        worst = (
            max((parity.compare(engine, prompt, said, line.reply, line.schedule.steps) for line in lines), key=severity)
            for said in replies
        )
        session._store.judged(request.id, arm, session._compared(request, arm), Comparison(*worst))


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
