"""The time model: two clocks in closed form, the same as SimPy processes, and the costs that the design derives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from calibration import Costs, ProfileError
from policies import Policy
from simulator import run, simpy_clocks
from simulator.recorded import Recording
from simulator.schedule import read_codes
from simulator.two_clocks import TwoClocks
from tests import strategies
from traces import Request

STEP_S, HOST_S = 0.010, 0.002
"""A device-bound machine: e = 0.2 pipelined steps of overlap to lose."""


def machine(run_ahead_s: float = math.inf, host_work_s: float = 0.0) -> Costs:
    device = {width: STEP_S * (1 + 0.25 * (width - 1)) for width in range(1, 9)}
    return Costs("m", range(1, 1000), device, read_s=HOST_S, run_ahead_s=run_ahead_s, host_work_s=host_work_s)


def seconds(codes: str, costs: Costs) -> float:
    return TwoClocks(costs).decode_s(read_codes(codes), 10)


@pytest.mark.parametrize(
    ("codes", "steps"),
    [
        ("S", 1.2),  # h + d + r
        ("V5:0", 2.2),
        ("B P P P R", 4.2),  # a run of m pipelined forwards costs m + e
        ("B P P P!", 3.2),  # the forward submitted behind the stop is not waited for
        ("B P D S S B P P R", 2.2 + 2 * 1.2 + 3.2),  # a phantom drain: three lost overlaps in all
    ],
)
def test_costs_in_pipelined_steps_when_device_bound(codes: str, steps: float) -> None:
    assert seconds(codes, machine()) == pytest.approx(steps * STEP_S, rel=1e-12)


def test_a_phantom_drain_costs_three_lost_overlaps() -> None:
    lost = seconds("B P D S S B P P R", machine()) - seconds("B P P P P P P R", machine())

    # 7 tokens either way; the drain costs one overlap at its restart and one in each synchronous round.
    assert lost == pytest.approx(3 * HOST_S)


def test_an_isolated_verify_costs_its_width_and_three_lost_overlaps() -> None:
    speculated = seconds("B P D V5:2 S S B P P R", machine())
    plain = seconds("B P P P P P P P P P R", machine())

    assert speculated - plain == pytest.approx(2.2 * STEP_S + 3 * HOST_S - 3 * STEP_S)


def test_an_isolated_verify_that_pauses_costs_its_width_and_one_lost_overlap() -> None:
    speculated = seconds("B P D V5:0 B P P R", machine())
    plain = seconds("B P P P P P R", machine())

    assert speculated - plain == pytest.approx(2.2 * STEP_S + 1 * HOST_S - 1 * STEP_S)


def test_submitting_blocks_when_too_much_work_is_outstanding() -> None:
    # 4 ms of device work may be outstanding: submit returns at end - 4 ms, and the read costs 2 ms more than that.
    costs = machine(run_ahead_s=0.004)

    assert seconds("B", costs) == pytest.approx(0.006)
    assert seconds("B P P P R", costs) == pytest.approx(4 * STEP_S + HOST_S)
    assert seconds("B P!", costs) == pytest.approx(0.020 - 0.004 + HOST_S)


def test_a_read_that_outlasts_the_run_ahead_stalls_every_step() -> None:
    costs = machine(run_ahead_s=0.0005)

    # d + max(0, h + r - b) for every pipelined step but the first, and the last read waits for the one before it.
    assert seconds("B P P P R", costs) == pytest.approx(4 * STEP_S + 3 * (HOST_S - 0.0005) + HOST_S)
    assert costs.step_s(100) == pytest.approx(STEP_S + HOST_S - 0.0005)


def test_host_work_is_hidden_in_the_pipeline_and_paid_in_synchronous_rounds() -> None:
    costs = machine(host_work_s=0.005)

    assert seconds("B P P P R", costs) == pytest.approx(4 * STEP_S + HOST_S + 0.005)
    assert seconds("V5:2", costs) == pytest.approx(2 * STEP_S + HOST_S + 3 * 0.005)


@settings(max_examples=300)
@given(
    request=strategies.requests(),
    policy=strategies.any_policies(),
    costs=strategies.machines(),
    pipelined=st.booleans(),
)
def test_recurrence_and_processes_agree_after_every_event(
    request: Request, policy: Policy, costs: Costs, pipelined: bool
) -> None:
    recording = Recording(request)
    events = recording.schedule(policy, costs, pipelined=pipelined).events

    recurrence = TwoClocks(costs).passed_s(events, recording.prompt_tokens)
    processes = simpy_clocks.passed_s(events, recording.prompt_tokens, costs)

    assert recurrence == pytest.approx(processes, rel=0, abs=1e-9)


def test_ten_thousand_random_requests_take_the_same_time_through_both_clocks() -> None:
    random = np.random.default_rng(20261129)
    chosen = [policies.load(name) for name in policies.names()]
    for index in range(10_000):
        tokens = random.integers(0, random.integers(2, 9), size=random.integers(2, 40))
        split = int(random.integers(1, len(tokens)))
        finish = ("stop", "length", "guard")[index % 3]
        request = Request.of(id="r", prompt=tokens[:split].tolist(), reply=tokens[split:].tolist(), finish=finish)
        device = {width: float(seconds) for width, seconds in enumerate(random.uniform(0.001, 0.05, 8), start=1)}
        launch_s, read_s, work_s = (float(seconds) for seconds in random.choice([0, 0.0004, 0.003, 0.02], 3))
        ahead_s = float(random.choice([math.inf, 0.0, 0.001, 0.01]))
        costs = Costs("m", range(1, 64), device, launch_s, read_s, ahead_s, work_s)
        recording = Recording(request)
        events = recording.schedule(chosen[index % len(chosen)], costs, pipelined=index % 5 > 0).events

        recurrence = TwoClocks(costs).passed_s(events, recording.prompt_tokens)
        processes = simpy_clocks.passed_s(events, recording.prompt_tokens, costs)

        assert recurrence == pytest.approx(processes, rel=0, abs=1e-9)


@settings(max_examples=200)
@given(request=strategies.requests(), policy=strategies.any_policies(), costs=strategies.machines(), sync=st.booleans())
def test_the_time_of_a_run_is_the_sum_of_its_rounds(request: Request, policy: Policy, costs: Costs, sync: bool) -> None:
    result = run(request, policy, costs, sync=sync)

    assert math.fsum(turn.duration_s for turn in result.rounds) == pytest.approx(result.decode_s, rel=0, abs=1e-9)
    assert math.fsum(spent.seconds for spent in result.spent) == pytest.approx(result.decode_s, rel=0, abs=1e-9)
    assert all(turn.duration_s > -1e-12 for turn in result.rounds)
    assert sum(turn.emitted for turn in result.rounds) == result.generated - 1


def test_plain_against_plain_is_one() -> None:
    request = Request.of(id="r", prompt=[1, 2], reply=[*range(50)], finish="stop")

    result = run(request, policies.load("plain"), machine())

    assert (result.speedup, result.decode_speedup) == (1.0, 1.0)


def test_a_reply_that_ended_at_its_prefill_takes_no_decode_time() -> None:
    request = Request.of(id="r", prompt=[1, 2], reply=[3], finish="length")

    result = run(request, policies.load("gated"), machine())

    assert (result.decode_s, result.total_s, result.speedup, result.decode_speedup) == (0.0, 0.0, 1.0, 1.0)


def test_a_context_that_the_costs_do_not_stand_for_is_refused() -> None:
    request = Request.of(id="long", prompt=[1] * 990, reply=[*range(50)], finish="stop")

    with pytest.raises(ProfileError, match=r"^request 'long' under plain: context 1000 is outside the 1\.\.999"):
        run(request, policies.load("plain"), machine())


def test_a_reply_may_reach_the_last_declared_context() -> None:
    request = Request.of(id="r", prompt=[1] * 990, reply=[*range(10)], finish="length")

    # Positions 990 to 998 are in the state when its nine forwards start.
    assert run(request, policies.load("plain"), machine()).generated == 10
