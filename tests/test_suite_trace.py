"""The recorded suite, on which policies are tuned and judged."""

from __future__ import annotations

import traces
from calibration import suites
from tuning.split import split

TRACE = traces.load("suite")


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
