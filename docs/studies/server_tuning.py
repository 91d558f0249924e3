"""The constants of `gated`'s break-even rule: a grid, tuned on one half of the chat stratum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from server_study import ENDS, Requests, gain
from server_workloads import benchmark, recorded, stratum

from policies import Policy
from policies.gated import Gated

THRESHOLDS = (2.4, 2.6, 2.8, 3.0, 3.2, 3.4, 3.6, 3.8, 4.0, 4.2, 4.4)
"""Tokens a round below which a row pauses."""
CONFIRMATIONS = (1, 2, 3)
"""Probes in a row that end a pause."""
WAITS = (0, 1, 2)
"""Plain rounds before decoding is pipelined again; the reference waits for 2."""
KEEP = 0.9
"""Share of the gain of `gated` as it is that a rule has to keep on copies."""
DEFAULT = Gated()


@cache
def halves() -> tuple[Requests, Requests]:
    """Return the questions that rules are tuned on and those that they are judged on: every second one each."""
    return stratum()[::2], stratum()[1::2]


@cache
def tuning_copies() -> tuple[Requests, ...]:
    """Return the copies that a rule has to keep the gain of while tuning: two recorded ones and two synthetic ones."""
    numbered = [benchmark("numbered_copy", 1, context) for context in (1024, 2048)]
    return recorded("copy"), recorded("long_copy"), *numbered


def worst(requests: Requests, policy: Policy) -> float:
    """Return the smaller gain of both ends."""
    return min(gain(requests, policy, end) for end in ENDS)


def kept(requests: Requests, policy: Policy) -> float:
    """Return the smallest share of the gain of `gated` as it is that a rule keeps at both ends."""
    return min(gain(requests, policy, end) / gain(requests, DEFAULT, end) for end in ENDS)


def least_kept(rule: Policy) -> float:
    """Return the smallest share of its gain that a rule keeps on any of the copies that it was tuned on."""
    return min(kept(copies, rule) for copies in tuning_copies())


def rules(wait: int) -> Iterator[Gated]:
    """Yield every rule of the grid that waits so long."""
    for threshold, confirmations in product(THRESHOLDS, CONFIRMATIONS):
        yield Gated(min_tokens_per_round=threshold, resume_confirmations=confirmations, pipeline_after=wait)


@cache
def best(wait: int) -> Gated | None:
    """Return the rule with the greatest worst gain on the tuning half, among those that keep what copies gain."""
    keeping = [rule for rule in rules(wait) if least_kept(rule) >= KEEP]
    return max(keeping, key=lambda rule: worst(halves()[0], rule), default=None)


def tuned() -> Gated:
    """Return the best rule of all waits."""
    found = [rule for rule in map(best, WAITS) if rule]
    return max(found, key=lambda rule: worst(halves()[0], rule))


def around(rule: Gated) -> Iterator[Gated]:
    """Yield the rule and its neighbours, one setting changed at a time."""
    yield rule
    assert rule.min_tokens_per_round is not None
    for step in (-0.4, -0.2, 0.2, 0.4):
        yield replace(rule, min_tokens_per_round=round(rule.min_tokens_per_round + step, 1))
    for confirmations in (rule.resume_confirmations - 1, rule.resume_confirmations + 1):
        if confirmations:
            yield replace(rule, resume_confirmations=confirmations)
    for wait in WAITS:
        if wait != rule.pipeline_after:
            yield replace(rule, pipeline_after=wait)
    for tokens in (8, 16):
        yield replace(rule, min_pause_tokens=tokens)
