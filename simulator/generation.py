"""Prompt lookup for mlx-lm users: the decode loop on a model that mlx-lm has loaded."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import policies
from calibration import Costs
from calibration.checkpoints import model_engine
from calibration.engine import Sampler
from policies import Drafter, LookupPolicy, NgramIndex, Policy, PolicyError, Prices
from simulator.stream import decode

Generated = Generator[tuple[int, Any, bool], None, None]
"""Tokens with their log-probabilities, and whether they were proposed."""

EVERY_STEP_ALIKE = Costs("unknown", range(1, 2), {1: 1.0})
"""What a policy that does not weigh prices is told of the machine."""


def lookup_generate_step(
    prompt: Sequence[int],
    model: Any,
    policy: Policy | str = "gated",
    *,
    max_tokens: int = 256,
    prices: Prices | None = None,
    sampler: Sampler | None = None,
    prompt_cache: Any = None,
) -> Generated:
    """Generate with prompt lookup, as mlx-lm's `speculative_generate_step` does with a draft model.

    Like that one it does not stop at an end token: the caller does, by not asking further. The reply is that of plain
    decoding with the same sampler.

    Args:
        prompt: token ids, at least one; an mlx array will do.
        model: as mlx-lm's `load` returns it.
        policy: what to propose and when, or its name as on a command line.
        max_tokens: tokens at most; -1 is no limit.
        prices: of the machine, as in a profile's `costs()`; policies that weigh them need them.
        sampler: greedy unless given; drawn tokens are keyed by their position.
        prompt_cache: a KV state that already holds part of the prompt's context; it is appended to.

    Yields:
        A token, its log-probabilities as an mlx array, and whether it was proposed before the model said it.

    Raises:
        PolicyError: no such policy, one that proposes nothing, or one that needs prices and has none.
        EngineError: the model cannot take back rejected proposals.
        ProfileError: while generating, at a context or width for which the prices do not stand.
    """
    chosen = policies.load(policy) if isinstance(policy, str) else policy
    if not isinstance(chosen, LookupPolicy):
        raise PolicyError(f"policy {chosen.name!r} proposes nothing; use mlx-lm's generate_step")
    if chosen.needs_prices and prices is None:
        raise PolicyError(f"policy {chosen.name!r} weighs what forwards cost: prices= takes a profile's costs()")
    tokens = [int(token) for token in prompt]
    if not tokens:
        raise PolicyError("prompt: must have at least one token")
    limit = max_tokens if max_tokens >= 0 else policies.UNLIMITED
    engine = model_engine(model, sampler or Sampler(), prompt_cache)
    engine.check_rollback(engine.context + len(tokens) + min(limit, 1) + chosen.max_draft)
    return _generate(engine, tokens, chosen, limit, prices or EVERY_STEP_ALIKE)


def _generate(engine: Any, prompt: list[int], policy: LookupPolicy, limit: int, prices: Prices) -> Generated:
    if limit == 0:
        return
    before = engine.context
    engine.fill(prompt[:-1])
    seen = [*prompt]
    index = NgramIndex(
        seen,
        ngram_max=policy.ngram_max,
        ngram_min=policy.ngram_min,
        max_draft=policy.max_draft,
        match=policy.match,
    )
    drafter = Drafter(policy.governor(prices), index, len(prompt) + 1)
    steps = decode(drafter, limit, pipeline_after=policy.pipeline_after)
    try:
        seen += engine.forward(prompt[-1:])
        yield seen[-1], engine.log_probabilities()[0], False
        code, count = next(steps)
        while True:
            proposed = index.proposal(len(seen), count) if code == "V" else []
            chosen = _chosen(engine, code, seen[-1], proposed)
            accepted = _landed(chosen, proposed)
            if proposed:
                engine.trim(len(proposed) - accepted)
            rows = engine.log_probabilities() if chosen else []
            for place, token in enumerate(chosen[: accepted + 1]):
                seen.append(token)
                yield token, rows[place], place < accepted
            code, count = steps.send((min(len(chosen), accepted + 1), accepted, False))
    except StopIteration:
        return
    finally:
        # Whoever stops asking finds a state that holds all that was yielded but the newest token.
        engine.trim(engine.context - before - len(seen) + 1)


def _chosen(engine: Any, code: str, current: int, proposed: Sequence[int]) -> list[int]:
    """Do one step and return what the model said; a step that begins the pipeline says nothing yet."""
    if code == "B":
        engine.submit(current)
        return []
    if code in "SV":
        found: list[int] = engine.forward([current, *proposed])
        return found
    if code == "P":
        engine.submit()
    return [engine.read().token]


def _landed(chosen: Sequence[int], proposed: Sequence[int]) -> int:
    """Return how many proposals the model says too."""
    for place, token in enumerate(proposed):
        if chosen[place] != token:
            return place
    return len(proposed)
