"""Random schedules of a server: requests of a small alphabet, settings, and what happens when."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import policies
from policies import Policy
from simulator.serving.actions import Action
from simulator.serving.server import Server
from traces import Request

POLICIES = [
    policies.load(text)
    for text in (
        "gated",
        "gated",
        "graded",
        "fixed",
        "plain",
        "gated:min_tokens_per_round=1.8,resume_confirmations=2",
        "gated:min_tokens_per_round=2.5,pipeline_after=0,probation_tokens=1,min_pause_tokens=3",
        "breakeven",
        "breakeven:memory=2,doubt=0.1,pipeline_after=0",
    )
]


@dataclass(frozen=True, slots=True)
class Happening:
    """What happens before one tick."""

    arrived: tuple[Request, ...]
    cancelled: frozenset[str]
    preempted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Schedule:
    """What one server is put through."""

    policy: Policy
    server: Server
    happenings: tuple[Happening, ...]
    """Before the first ticks; nothing happens before any later one."""
    failures: float
    """Share of the actions that fail."""
    seed: int

    @property
    def requests(self) -> list[Request]:
        """Every request, in order of arrival."""
        return [request for happening in self.happenings for request in happening.arrived]

    def fails(self) -> Callable[[Action], bool]:
        """Return what makes actions fail, the same ones every time."""
        chance = random.Random(self.seed)
        return lambda action: chance.random() < self.failures


def random_schedule(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    chance = random.Random(seed)
    alphabet, longest = chance.randint(1, 5), chance.choice([6, 14, 30])
    requests = [_request(chance, f"r{place}", alphabet, longest) for place in range(chance.randint(1, 5))]
    return Schedule(
        policy=chance.choice(POLICIES),
        server=_server(chance, max(len(request.prompt) for request in requests)),
        happenings=_happenings(chance, requests),
        failures=chance.choice([0, 0, 0, 0.01, 0.05]),
        seed=seed,
    )


def _request(chance: random.Random, name: str, alphabet: int, longest: int) -> Request:
    prompt, reply = ([chance.randrange(alphabet) for _ in range(chance.randint(1, longest))] for _ in range(2))
    finish = chance.choice(["stop", "length", "guard"])
    return Request.of(
        id=name,
        prompt=prompt,
        reply=reply,
        finish=finish,
        max_tokens=None if finish == "length" else chance.choice([None, len(reply), len(reply) + 1, len(reply) + 5]),
        eligible=chance.random() < 0.85,
        pipelinable=chance.random() < 0.95,
    )


def _server(chance: random.Random, longest_prompt: int) -> Server:
    return Server(
        parallel=chance.randint(1, 4),
        max_batch=chance.randint(1, 4),
        max_batch_prefill=chance.randint(1, 3),
        prefill_chunk=chance.choice([3, 8, 2048]),
        grant_interval=chance.choice([0, 1, 3]),
        storage=chance.choice(["auto", "dense", "paged"]),
        paged_limit=chance.choice([8, 20, 4096]),
        max_kv_size=chance.choice([None, None, None, longest_prompt + 1, longest_prompt + 9]),
        pipelined=chance.random() < 0.95,
    )


def _happenings(chance: random.Random, requests: list[Request]) -> tuple[Happening, ...]:
    """Spread arrivals over the first ticks, and strike some of the requests now and then."""
    ids = [request.id for request in requests]
    given_up, preempted = chance.choice([0, 0, 0.02]), chance.choice([0, 0, 0.02])
    arrives = sorted(chance.randrange(chance.choice([1, 12])) for _ in requests)
    return tuple(
        Happening(
            tuple(request for request, when in zip(requests, arrives, strict=True) if when == tick),
            frozenset(name for name in ids if chance.random() < given_up),
            frozenset(name for name in ids if chance.random() < preempted),
        )
        for tick in range(40)
    )
