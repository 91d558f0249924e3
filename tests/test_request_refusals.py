"""What a request and a trace made in Python may not hold: the rules are those of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.trace_lines import refusal
from traces import Request, Trace

VALUES = {
    "a 2-D array": (
        {"prompt": np.ones((2, 1), np.int32)},
        "prompt[0] must be an integer from 0 to 2147483647 (got [1])",
    ),
    "a 0-D array": ({"prompt": np.array(3)}, "prompt must be a list of token ids (got array(3))"),
    "an array of floats": ({"prompt": np.array([1.0])}, "prompt[0] must be an integer from 0 to 2147483647 (got 1.0)"),
    "an array of bools": ({"reply": np.array([True])}, "reply[0] must be an integer from 0 to 2147483647 (got True)"),
    "an array of int64": (
        {"reply": np.array([2**40])},
        "reply[0] must be an integer from 0 to 2147483647 (got 1099511627776)",
    ),
    "an empty array": ({"reply": np.array([], np.int32)}, "reply must hold at least one token (got [])"),
    "a set": ({"reply": {1}}, "reply must be a list of token ids (got {1})"),
    "NaN as arrival": ({"arrival_s": float("nan")}, "arrival_s must be a finite number >= 0 (got nan)"),
    "NaN as margin": ({"margins": [float("nan"), 1.0]}, "margins[0] must be a finite number >= 0 (got nan)"),
    "a NaN array of margins": (
        {"margins": np.array([1, np.nan], np.float32)},
        "margins[1] must be a finite number >= 0 (got nan)",
    ),
    "an infinite margin": ({"margins": [1, float("inf")]}, "margins[1] must be a finite number >= 0 (got inf)"),
    "a numpy bool": ({"eligible": np.True_}, "eligible must be true or false (got " + f"{np.True_!r})"),
    "an integer that cannot be printed": (
        {"arrival_s": 10**5000},
        "arrival_s must be a finite number >= 0 (got an integer of more than 4300 digits)",
    ),
    "an integer limit that cannot be printed": (
        {"finish": "length", "max_tokens": 10**5000},
        "max_tokens must be the reply's length when finish is 'length' "
        "(got an integer of more than 4300 digits for 2 tokens)",
    ),
}


@pytest.mark.parametrize(("changes", "message"), VALUES.values(), ids=VALUES)
def test_a_request_made_in_python_is_held_to_the_same_rules(changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"id": "b", "prompt": [1, 2], "reply": [3, 4], "finish": "stop", **changes}

    assert refusal(lambda: Request.of(**values)) == message


def test_a_trace_made_in_python_is_held_to_the_same_rules() -> None:
    request = Request.of("a", [1], [2], "stop")

    assert refusal(lambda: Trace("mine", {"model": "m"}, ())) == "mine: holds no requests"
    assert refusal(lambda: Trace("mine", {}, (request,))) == "mine: model must be a non-empty string (got None)"
    assert refusal(lambda: Trace("mine", {"model": "m"}, (request, request))) == (
        "mine: id must be unique in its trace (got 'a' again)"
    )
