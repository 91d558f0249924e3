"""Hypothesis strategies: requests of a small alphabet, so that lookups hit, and machines of every kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

import policies
from calibration import Costs
from calibration.prefill import Prefill
from policies import Policy, Range, settings_of
from traces import Request

CONTEXTS = range(1, 400)


@st.composite
def requests(draw: st.DrawFn, *, alphabet: int = 5, longest: int = 60) -> Request:
    """Draw a request whose reply may end in every way."""
    token = st.integers(0, draw(st.integers(1, alphabet)))
    prompt = draw(st.lists(token, min_size=1, max_size=longest))
    reply = draw(st.lists(token, min_size=1, max_size=longest))
    finish = draw(st.sampled_from(["stop", "length", "guard"]))
    extra = None if finish == "length" else draw(st.sampled_from([None, 0, 1, 2, 9]))
    max_tokens = None if extra is None else len(reply) + extra
    pipelinable = draw(st.sampled_from([True, True, True, False]))
    eligible = draw(st.sampled_from([True, True, True, False]))
    return Request.of(
        id="r",
        prompt=prompt,
        reply=reply,
        finish=finish,
        max_tokens=max_tokens,
        pipelinable=pipelinable,
        eligible=eligible,
        reason=None if eligible else "images",
    )


@st.composite
def any_policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with any settings that it takes."""
    kind = policies.policy_classes()[draw(st.sampled_from(policies.names()))]
    chosen: dict[str, Any] = {}
    for name, setting in settings_of(kind).items():
        if draw(st.booleans()):
            continue
        if not isinstance(setting.domain, Range):
            chosen[name] = draw(st.sampled_from(setting.domain.words))
        elif setting.kind is int:
            chosen[name] = draw(st.integers(int(setting.domain.low), min(12, int(setting.domain.high))))
        else:
            chosen[name] = draw(st.floats(setting.domain.low, min(9.0, setting.domain.high)))
    if chosen.get("ngram_min", 2) > chosen.get("ngram_max", 3):
        chosen |= {"ngram_max": chosen.get("ngram_min", 2), "ngram_min": chosen.get("ngram_min", 2)}
    return kind(**chosen)


@st.composite
def machines(draw: st.DrawFn) -> Costs:
    """Draw costs of any shape: cliffs, host-bound, a submit that blocks, costs that depend on the context."""
    seconds = st.floats(0.001, 0.1)
    overhead = st.sampled_from([0.0, 0.0005, 0.003, 0.02])
    by_context = draw(st.booleans())
    device: dict[int, float | list[float]] = {}
    for width in range(1, 66):
        first = draw(seconds) if width < 12 else 0.05
        last = draw(seconds) if by_context and width in (1, 2, 3, 8) else first
        device[width] = np.linspace(first, last, len(CONTEXTS)).tolist() if by_context else first
    return Costs(
        name="drawn",
        contexts=CONTEXTS,
        device=device,
        launch_s=draw(overhead),
        read_s=draw(overhead),
        run_ahead_s=draw(st.sampled_from([math.inf, 0.0, 0.002, 0.01, 0.03])),
        host_work_s=draw(overhead),
        prefill=Prefill(fixed_s=0.01, per_token_s=0.0001),
    )
