"""Recordings: a suite of prompts on an engine becomes the requests of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.engine import Engine, Reading, Sampler
from calibration.host_clock import today
from calibration.suites import Prompt, Suite
from traces import Finish, Request

DEFAULT_MAX_TOKENS = 400
"""The longest reply when neither the prompt nor the command says."""


@dataclass(frozen=True)
class Recorded:
    """What came of a suite."""

    requests: tuple[Request, ...]
    """The finished replies, in the order of the suite."""

    silent: tuple[str, ...]
    """Ids of the prompts whose reply ended before its first token, which a trace cannot hold."""

    interrupted: bool
    """Whether Ctrl-C came before the end of the suite."""


def header(engine: Engine, suite: Suite, sampler: Sampler) -> dict[str, object]:
    """Return the header of a trace that is recorded today (UTC)."""
    return {
        **engine.provenance(),
        "sampler": sampler.provenance(),
        "suite": suite.name,
        "recorded": today(),
    }


def record(engine: Engine, prompt: Prompt, sampler: Sampler, max_tokens: int | None = None) -> Request | None:
    """Return what the model says to one prompt, or None when it ends its reply before the first token.

    Args:
        engine: the model.
        prompt: what it is asked.
        sampler: how tokens are chosen.
        max_tokens: the longest reply, instead of the prompt's own.
    """
    limit = max_tokens or prompt.max_tokens or DEFAULT_MAX_TOKENS
    tokens = engine.encode(*prompt.turns)
    readings: list[Reading] = []
    finish: Finish = "length"
    for reading in _decode(engine, tokens, sampler, limit):
        if reading.token in engine.eos:
            finish = "stop"
            break
        readings.append(reading)
    if not readings:
        return None
    reply = [reading.token for reading in readings]
    return Request(
        id=prompt.id,
        prompt=np.array(tokens, dtype=np.int32),
        reply=np.array(reply, dtype=np.int32),
        finish=finish,
        max_tokens=limit,
        tags=prompt.tags,
        text=engine.decode(reply),
        margins=np.array([reading.margin for reading in readings], dtype=np.float32),
    )


def _decode(engine: Engine, tokens: list[int], sampler: Sampler, limit: int) -> Iterator[Reading]:
    """Yield `limit` readings, each with the next forward already under way while it is waited for."""
    engine.prefill(tokens, sampler, margins=True)
    for left in range(limit - 1, -1, -1):
        if left:
            engine.submit()
        yield engine.read()


def record_all(
    engine: Engine,
    prompts: Iterable[Prompt],
    sampler: Sampler,
    max_tokens: int | None,
    keep: Callable[[Sequence[Request]], None],
) -> Recorded:
    """Record one prompt after another; Ctrl-C gives up the one being worked on.

    Args:
        engine: the model.
        prompts: what it is asked.
        sampler: how tokens are chosen.
        max_tokens: the longest reply, instead of each prompt's own.
        keep: called with all finished replies after each, so that whatever ends the run, none of them is lost.
    """
    requests: list[Request] = []
    silent: list[str] = []
    interrupted = False
    try:
        for prompt in prompts:
            request = record(engine, prompt, sampler, max_tokens)
            if request is None:
                silent.append(prompt.id)
            else:
                requests.append(request)
                keep(requests)
    except KeyboardInterrupt:
        interrupted = True
    return Recorded(tuple(requests), tuple(silent), interrupted)
