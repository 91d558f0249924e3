"""The recorded chat questions, and the part of them that the server's studies take."""

from __future__ import annotations

import calibration
import policies
import traces
from calibration import suites
from policies import Drafter
from simulator.serving.recorded import serve
from simulator.serving.server import Server

TRACE = traces.load("chat_questions")


def test_every_question_of_the_suite_was_answered_once_and_greedily() -> None:
    questions = suites.load("chat").prompts

    assert [request.id for request in TRACE.requests] == [question.id for question in questions]
    assert {request.max_tokens for request in TRACE.requests} == {256}
    assert {name: TRACE.header[name] for name in ("suite", "dtype", "sampler")} == {
        "suite": "chat",
        "dtype": "float32",
        "sampler": {"kind": "greedy"},
    }


def test_of_sixteen_questions_gated_lands_a_quarter_to_nearly_half_of_what_it_proposes() -> None:
    prices = calibration.load("gb10-qwen3-1.7b-4bit").costs()
    drafters: dict[str, Drafter] = {}

    for tick in serve(TRACE.requests, policies.load("gated"), prices, Server(), clients=1):
        drafters |= {row.id: row.drafter for row in tick.released if row.drafter}

    shares = {name: one.accepted / one.proposed for name, one in drafters.items() if one.proposed}
    assert sum(0.25 <= share <= 0.45 for share in shares.values()) == 16
