"""Replaying on an engine: the rounds of the simulation, and on the scripted engine its times too."""

from __future__ import annotations

import json
import random
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import policies
from calibration import Costs
from calibration.engine import Sampler
from calibration.scripted_engine import ScriptedEngine
from policies import UNLIMITED, Drafter, Policy
from simulator import run
from simulator.replay.execution import Choice, Execution, Reply, Script
from simulator.replay.parity import Parity, compare, judge
from simulator.run import Run
from simulator.two_clocks import TwoClocks
from tests import strategies
from traces import Request


def replayed(request: Request, policy: Policy, costs: Costs, *, free: bool = False) -> Execution:
    engine = ScriptedEngine.of([request], costs)
    engine.prefill(request.prompt.tolist(), Sampler())
    word = Choice(request, engine.eos) if free else Script(request)
    return decoded(engine, request, policy, costs, word, engine.read().token)


def decoded(
    engine: ScriptedEngine, request: Request, policy: Policy, costs: Costs, word: Script | Choice, first: int
) -> Execution:
    """Decode a reply in one turn, and take the engine back to the prompt."""
    reply = Reply(engine, request, policy, costs, word, first=first)
    reply.go_on(UNLIMITED)
    assert reply.finished
    engine.trim(engine.context - len(request.prompt))
    return reply.execution


def check(result: Run, done: Execution, costs: Costs) -> None:
    schedule = result.schedule
    assert done.schedule.codes == schedule.codes
    assert done.schedule.paused_rounds == schedule.paused_rounds
    assert done.schedule.shadow_confirmations == schedule.shadow_confirmations
    assert done.reply == tuple(result.request.reply.tolist())
    passed_s = TwoClocks(costs).passed_s(schedule.steps, len(result.request.prompt))
    assert np.cumsum(done.seconds) == pytest.approx(passed_s, rel=0, abs=1e-9)


@settings(max_examples=300)
@given(request=strategies.requests(), policy=strategies.any_policies(), costs=strategies.machines())
def test_replaying_on_the_script_equals_the_prediction(request: Request, policy: Policy, costs: Costs) -> None:
    result = run(request, policy, costs)

    done = replayed(request, policy, costs)

    check(result, done, costs)


@settings(max_examples=200)
@given(request=strategies.requests(), policy=strategies.any_policies(), costs=strategies.machines())
def test_left_free_the_script_says_what_was_recorded(request: Request, policy: Policy, costs: Costs) -> None:
    result = run(request, policy, costs)

    done = replayed(request, policy, costs, free=True)

    check(result, done, costs)


@given(request=strategies.requests(), policy=strategies.any_policies(), wrong=st.integers(0, 50))
def test_forced_rounds_do_not_depend_on_what_the_engine_says(request: Request, policy: Policy, wrong: int) -> None:
    costs = Costs("m", range(1, 400), dict.fromkeys(range(1, 66), 0.01))
    engine = ScriptedEngine({tuple(request.prompt.tolist()): [wrong] * 7}, costs)
    engine.prefill(request.prompt.tolist(), Sampler())
    engine.read()

    done = decoded(engine, request, policy, costs, Script(request), int(request.reply[0]))

    check(run(request, policy, costs), done, costs)


@settings(max_examples=300)
@given(
    request=strategies.requests(),
    chosen=st.lists(strategies.any_policies(), min_size=1, max_size=3),
    costs=strategies.machines(),
    turns=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    order=st.randoms(use_true_random=False),
)
def test_replies_that_take_turns_take_as_long_as_alone(
    request: Request, chosen: list[Policy], costs: Costs, turns: list[int], order: random.Random
) -> None:
    engine = ScriptedEngine.of([request], costs)
    engine.prefill(request.prompt.tolist(), Sampler())
    engine.read()
    first = int(request.reply[0])
    replies = [Reply(engine, request, one, costs, Script(request), first=first) for one in [*chosen, *chosen]]

    for tokens in cycle(turns):
        if not (going := [reply for reply in replies if not reply.finished]):
            break
        order.shuffle(going)
        for reply in going:
            reply.go_on(tokens)

    for reply, policy in zip(replies, [*chosen, *chosen], strict=True):
        check(run(request, policy, costs), reply.execution, costs)


def test_what_a_policy_takes_to_decide_is_in_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine.of([REQUEST], COSTS)
    engine.prefill(LOOP, Sampler())
    engine.read()
    ask, count = Drafter.ask, 0

    def slow(drafter: Drafter, *args: Any) -> Any:
        nonlocal count
        count += 1
        engine.work(1.0)
        return ask(drafter, *args)

    monkeypatch.setattr(Drafter, "ask", slow)
    reply = Reply(engine, REQUEST, policies.load("fixed"), COSTS, Script(REQUEST), first=1)
    while not reply.finished:
        reply.go_on(3)

    seconds = sum(reply.execution.seconds)
    assert count > 2
    assert int(seconds) == count


LOOP = [1, 2, 3, 4, 5, 6, 7, 8]
REQUEST = Request.of(id="copy", prompt=LOOP, reply=LOOP * 3, finish="length")
COSTS = Costs("m", range(1, 400), dict.fromkeys(range(1, 66), 0.01))


def parity_with(wide: dict[int, dict[int, float]], narrow: dict[int, dict[int, float]] | None = None) -> str:
    """Decode a copied text freely, plainly and under a policy, on an engine whose wide forwards see it otherwise."""
    engine = ScriptedEngine({tuple(LOOP): LOOP * 3}, COSTS, wide=wide, narrow=narrow)
    engine.prefill(LOOP, Sampler())
    word = Choice(REQUEST, engine.eos)
    first = engine.read().token
    plain = decoded(engine, REQUEST, policies.load("plain"), COSTS, word, first)
    fixed = decoded(engine, REQUEST, policies.load("fixed"), COSTS, word, first)
    found = compare(engine, LOOP, plain.reply, fixed.reply, fixed.schedule.steps)
    assert engine.context == len(LOOP)
    return str(found)


def test_replies_that_are_the_same_are_said_to_be() -> None:
    assert parity_with({}) == "same"


def test_a_small_gap_between_the_same_two_tokens_is_a_near_tie() -> None:
    # Position 18 is token 10 of the reply, 3. Plain sees 1.0 for it and 0.9 for 9; wide forwards see 1.05 for 9.
    found = parity_with({18: {9: 1.05}}, {18: {9: 0.9}})

    assert found == ("near-tie at token 10: 3 there, 9 here; logit gaps 0.1 and 0.05, paths differ by up to 0.15")


def logits(*row: float) -> NDArray[np.float32]:
    return np.array(row, dtype=np.float32)


@pytest.mark.parametrize(
    ("plain", "policy", "tokens", "verdict"),
    [
        (logits(1.0, 0.9, 0.0), logits(0.9, 1.0, 0.0), (0, 1), "near-tie"),
        # The same two on top, a gap of 0.5 in both, and paths that differ by 0.125: exactly four times as much.
        (logits(1.0, 0.5, 0.0), logits(1.0, 0.5, 0.125), (0, 1), "near-tie"),
        (logits(1.0, 0.5, 0.0), logits(1.0, 0.5, 0.12), (0, 1), "differs"),
        (logits(1.0, 0.9, 0.0), logits(0.0, 1.0, 0.9), (0, 1), "differs"),
        (logits(1.0, 0.9, 0.0), logits(0.9, 1.0, 0.0), (0, 2), "differs"),
        (logits(1.0, 0.9, 0.0), logits(0.9, 1.0, 0.0), (0, None), "near-tie"),
    ],
    ids=["swapped", "at four times", "beyond", "another on top", "a token not on top", "one reply ended"],
)
def test_a_near_tie_is_judged_by_both_paths(
    plain: NDArray[np.float32], policy: NDArray[np.float32], tokens: tuple[int, int | None], verdict: str
) -> None:
    assert judge(plain, policy, 3, tokens).verdict == verdict


def test_logits_that_overflow_explain_nothing_and_can_be_kept() -> None:
    found = judge(logits(1.0, np.inf), logits(-np.inf, np.nan), 0, (0, 1))

    assert found.verdict == "differs"
    assert Parity.of(json.loads(json.dumps(found.document(), allow_nan=False))) == found


def test_another_token_on_top_is_a_defect() -> None:
    found = parity_with({18: {9: 5.0, 12: 4.0}}, {18: {5: 0.9}})

    assert found == "differs at token 10: 3 there, 9 here; logit gaps 0.1 and 1, paths differ by up to 5"


def test_a_first_token_that_differs_is_judged_by_the_prefill() -> None:
    engine = ScriptedEngine({tuple(LOOP): LOOP})
    engine.prefill(LOOP, Sampler())
    engine.read()

    found = compare(engine, LOOP, [7], [1], [])

    assert str(found) == "differs at token 0: 7 there, 1 here; logit gaps 1 and 1, paths differ by up to 0"
    assert engine.context == len(LOOP)
