"""The recorded suite, on which policies are tuned and judged."""

from __future__ import annotations

import json

import calibration
import policies
import traces
from calibration import suites
from simulator.oracle import Oracle
from tests.documents import ROOT
from tuning.evaluation import Alone
from tuning.score import Judge, Rules
from tuning.split import split

TRACE = traces.load("suite")
PROFILE = "gb10-qwen3-1.7b-4bit"


def test_every_prompt_of_the_tuning_suite_was_answered_once_and_greedily() -> None:
    prompts = suites.load("tuning").prompts

    assert [(request.id, request.tags) for request in TRACE.requests] == [(one.id, one.tags) for one in prompts]
    assert {request.max_tokens for request in TRACE.requests} == {400}
    assert {name: TRACE.header[name] for name in ("suite", "dtype", "sampler")} == {
        "suite": "tuning",
        "dtype": "float32",
        "sampler": {"kind": "greedy"},
    }


def test_a_third_of_it_is_held_out() -> None:
    parts = split([TRACE])

    assert (len(parts.tuning), len(parts.held_out)) == (40, 20)


def test_what_the_oracle_gains_on_what_is_held_out_is_mostly_within_reach() -> None:
    found = json.loads((ROOT / "docs" / "studies" / "gated_constants.json").read_text("utf-8"))
    requests = split([TRACE]).held_out
    evaluator = Alone(requests, [calibration.load(PROFILE).costs()], 9)
    judge = Judge(requests, Rules(), evaluator.speedups(policies.load("gated")))
    best = judge.machine(evaluator.speedups(Oracle())[0])

    for policy, least in ((policies.load("gated", found[PROFILE]), 0.45), (policies.load("expected_value"), 0.60)):
        (row,) = evaluator.speedups(policy)
        long_prose = [row[place] for place in judge.prose if len(requests[place].reply) >= 100]
        assert (judge.machine(row) - 1) / (best - 1) >= least
        assert min(long_prose) >= 0.98
