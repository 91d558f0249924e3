"""What is asked of a server in its studies."""

from __future__ import annotations

from functools import cache

from server_study import Assumed, Requests, served

import policies
import traces
from simulator.serving.server import Server
from traces import Request, synthetic

ACCEPTANCE = (0.25, 0.45)
"""Share of proposed tokens that lands in the chat stratum under `gated` as it is."""


@cache
def stratum() -> Requests:
    """Return the recorded chat questions of which `gated` with its defaults lands 25 to 45 % of what it proposes.

    The ticks of one row do not depend on what they cost, and so neither does the choice.
    """
    questions = traces.load("chat_questions").requests
    records = served(questions, policies.load("gated"), Assumed(), 1, Server()).records
    low, high = ACCEPTANCE
    return tuple(
        question
        for question, record in zip(questions, records, strict=True)
        if record["proposed"] and low <= record["accepted"] / record["proposed"] <= high
    )


def recorded(name: str) -> Requests:
    """Return the requests of a shipped recording."""
    return traces.load(name).requests


def benchmark(style: str, requests: int, context: int = 640) -> Requests:
    """Return equal synthetic requests that end at `context` tokens: after prompts of 512, unless it is another."""
    make = {"plain": synthetic.plain, "copy": synthetic.copy, "numbered_copy": synthetic.numbered_copy}[style]
    return tuple(named(make, f"{style}_{context}_{place}", context) for place in range(requests))


def named(make: synthetic.Maker, name: str, context: int) -> Request:
    """Return one synthetic request with a reply of 128 tokens, the length of the reference's benchmark."""
    return make(name, context - 128, 128)
