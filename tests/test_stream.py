"""The decode loop: every reply comes out whole, every counter adds up, and skipping changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from calibration import Costs
from policies import Governor, Policy, Prices
from policies.gated import Gate, Gated
from policies.plain import Plain
from simulator.recorded import Recording
from simulator.schedule import Event, Schedule, read_codes
from tests import strategies
from tests.live import live
from traces import Request

SCRIPT = [300, 100, 101, 999, *range(102, 120)]
"""The reference's scripted reply to the prompt 100..119."""


def codes(prompt: list[int], reply: list[int], policy: str, finish: str = "length", **options: bool) -> str:
    request = Request.of(id="r", prompt=prompt, reply=reply, finish=finish)
    return Recording(request).schedule(policies.load(policy), NO_PRICES, **options).codes


NO_PRICES = Costs("nobody asks", range(1, 2), {1: 0.0})


@pytest.mark.parametrize(
    ("policy", "pipelined", "expected"),
    [
        ("gated", True, "S S V3:0 B P P P P D V3:2 V8:7 V2:1"),
        ("gated", False, "S S V3:0 S S S S V3:2 V8:7 V3:2"),
        ("graded", True, "S S V8:0 S S V8:7 V8:7"),
        ("graded", False, "S S V8:0 S S V8:7 V8:7"),
    ],
)
def test_the_reference_s_script(policy: str, pipelined: bool, expected: str) -> None:
    assert codes([*range(100, 120)], SCRIPT, policy, pipelined=pipelined) == expected


@pytest.mark.parametrize(
    ("prompt", "reply", "policy", "finish", "expected"),
    [
        ([1, 2, 3], [*range(10, 20)], "gated", "stop", "S S B P P P P P P P P!"),
        ([1, 2, 3], [*range(10, 20)], "gated", "length", "S S B P P P P P P R"),
        ([1, 2, 3], [*range(10, 20)], "gated", "guard", "S S B P P P P P P P"),
        ([1, 2, 3], [*range(10, 20)], "plain", "stop", "B P P P P P P P P P P!"),
        ([1, 2, 3], [10, 11], "graded", "length", "S"),
        ([1, 2, 3], [10], "graded", "length", ""),
        ([1, 2, 3], [10], "graded", "guard", ""),
        ([1, 2, 3], [10], "graded", "stop", "S!"),
        ([3, 3, 3], [3] * 5, "graded", "length", "V2:1 V2:1"),
        ([*range(40)], [*range(40)], "graded", "stop", "S V8:7 V8:7 V8:7 V8:7 V8:6!"),
        # The last token was proposed and is right, but what ended the reply came before it could count.
        ([*range(40)], [*range(40)], "graded", "guard", "S V8:7 V8:7 V8:7 V8:7 V8:5"),
    ],
)
def test_replies_end_in_every_way(prompt: list[int], reply: list[int], policy: str, finish: str, expected: str) -> None:
    assert codes(prompt, reply, policy, finish) == expected


def test_a_stop_met_exactly_at_the_limit_is_read_with_nothing_behind_it() -> None:
    request = Request.of(id="r", prompt=[1], reply=[2, 3, 4], finish="stop", max_tokens=4)

    assert Recording(request).schedule(Plain(), NO_PRICES).codes == "B P P R!"


def test_nobody_asks_a_request_that_is_not_eligible() -> None:
    request = Request.of(id="r", prompt=[3, 3, 3], reply=[3] * 5, finish="length", eligible=False, reason="images")

    schedule = Recording(request).schedule(policies.load("fixed"), NO_PRICES)

    assert (schedule.codes, schedule.paused_rounds) == ("B P P P R", 0)


def test_a_request_that_cannot_be_pipelined_is_decoded_synchronously() -> None:
    request = Request.of(id="r", prompt=[1], reply=[2, 3, 4], finish="length", pipelinable=False)

    assert Recording(request).schedule(Plain(), NO_PRICES).codes == "S S"


@settings(max_examples=400)
@given(
    request=strategies.requests(),
    policy=strategies.any_policies(),
    costs=strategies.machines(),
    pipelined=st.booleans(),
)
def test_every_reply_is_emitted_whole_and_every_counter_adds_up(
    request: Request, policy: Policy, costs: Costs, pipelined: bool
) -> None:
    schedule = Recording(request).schedule(policy, costs, pipelined=pipelined)
    steps = schedule.steps

    assert schedule.generated == len(request.reply)
    assert 1 + schedule.rounds + schedule.accepted - schedule.generated == surplus(request, steps)
    assert all(step.accepted <= step.size and step.emitted <= step.size + 1 for step in steps if step.code == "V")
    assert [step for step in steps if step.stop] == [step for step in steps[-1:] if step.stop]
    assert schedule.phantom_drains <= schedule.drains
    assert schedule.paused_rounds + schedule.drafted_rounds <= schedule.rounds
    assert pipelined or all(step.code in "SV" for step in steps)
    assert in_order(steps)


@given(request=strategies.requests(), policy=strategies.any_policies(), costs=strategies.machines())
def test_codes_are_read_back_as_the_steps_they_stand_for(request: Request, policy: Policy, costs: Costs) -> None:
    steps = Recording(request).schedule(policy, costs).steps

    # Somebody's interruption in the middle of a block leaves no mark in the codes.
    assert request.finish == "guard" or read_codes(Schedule(steps).codes) == steps


def surplus(request: Request, steps: tuple[Event, ...]) -> int:
    """Return by how many forwards a reply exceeds what its tokens needed, from how it ended."""
    if not steps:
        return 0
    wasted = steps[-1].code == "P"  # the next forward had been submitted when the end was read
    return wasted + (request.finish == "stop" and steps[-1].stop)


def in_order(steps: tuple[Event, ...]) -> bool:
    """Return whether a step is in flight exactly where one is read."""
    in_flight = False
    for step in steps:
        if in_flight != (step.code in "PDR"):
            return False
        in_flight = step.code in "BP"
    return True


@settings(max_examples=400)
@given(
    request=strategies.requests(),
    policy=strategies.any_policies(),
    costs=strategies.machines(),
    pipelined=st.booleans(),
)
def test_a_live_index_decides_as_the_table_does(
    request: Request, policy: Policy, costs: Costs, pipelined: bool
) -> None:
    """The index knows no future, so this also proves that skipping quiet stretches changes nothing."""
    recording = Recording(request)
    expected = recording.schedule(policy, costs, pipelined=pipelined)

    assert live(recording, policy, costs, pipelined) == Schedule(
        expected.steps, expected.paused_rounds, expected.shadow_confirmations
    )


class Patient(Gate):
    """A gate that takes asks one by one and proposes a token less than it found."""

    def choose(self, state: policies.State, match: policies.Match) -> int:
        assert match.tokens > 0
        assert 2 <= match.length <= 3
        return match.tokens - 1


class PatientPolicy(Gated):
    """Its policy."""

    def governor(self, prices: Prices) -> Governor:
        return Patient(self)


def test_a_governor_may_choose_less_than_was_found() -> None:
    request = Request.of(id="r", prompt=[*range(40)], reply=[*range(40)], finish="length")

    schedule = Recording(request).schedule(PatientPolicy(probation_tokens=1, full_at=1.0), NO_PRICES)

    assert schedule.codes == "S V7:6 V7:6 V7:6 V7:6 V7:6 V2:1 S"
