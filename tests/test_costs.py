"""Costs: what is asked of them, and what they refuse."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import calibration
from calibration import Costs, Profile, ProfileError
from calibration.prefill import PrefillTable
from tests.test_profiles import GRID, MINE

PUBLISHED = replace(MINE, launch_s=None, read_s=None, run_ahead_s=None, host_work_s=0.0, notes=())


def flat_profile(name: str = "m4-pro-qwen3-1.7b-4bit") -> Profile:
    return calibration.load(name)


def test_host_work_lengthens_a_step_once_it_no_longer_hides() -> None:
    costs = Costs("mine", range(1, 9), {1: 0.005}, read_s=0.002, host_work_s=0.004)

    assert costs.step_s(1) == 0.006
    assert costs.sync_s(1, 1) == 0.007


def test_costs_are_linear_between_measured_contexts_and_exact_at_them() -> None:
    costs = PUBLISHED.costs()

    assert costs.device_s(1, 512) == 0.0112
    assert costs.device_s(1, 1280) == pytest.approx((0.0112 + 0.0145) / 2)  # half way between 512 and 2048
    assert costs.device_s(1, 2048) == 0.0145


def test_the_lowest_measured_context_stands_for_those_below_it() -> None:
    cost = replace(GRID, contexts=(256, 512, 2048))

    assert replace(PUBLISHED, cost=cost).costs().device_s(1, 1) == 0.0101


def test_a_row_is_the_costs_of_one_width_by_context() -> None:
    costs = PUBLISHED.costs()
    row = costs.device_row(2)

    assert type(row) is list
    assert {type(seconds) for seconds in row} == {float}
    assert math.isnan(row[0])
    assert len(row) == 2049
    assert all(row[context] == costs.device_s(2, context) for context in costs.contexts)
    assert costs.device_row(2) is row


def test_a_flat_profile_has_rows_too() -> None:
    costs = calibration.load("gb10-qwen3-8b-4bit").costs()

    assert costs.device_row(1)[1:] == [0.018998] * 2048


@pytest.mark.parametrize("context", [0, 2049, -1, 2304])
def test_a_context_outside_the_declared_ones_is_refused(context: int) -> None:
    costs = calibration.load("gb10-qwen3-8b-4bit").costs()
    calls: list[Callable[[int], float]] = [
        costs.step_s,
        costs.overlap_s,
        partial(costs.sync_s, 1),
        partial(costs.device_s, 1),
    ]

    for call in calls:
        with pytest.raises(ProfileError) as refused:
            call(context)
        assert str(refused.value) == (
            f"context {context} is outside the 1..2048 that profile gb10-qwen3-8b-4bit stands for"
        )


def test_a_width_in_between_is_refused_with_the_option_that_fills_it_in() -> None:
    with pytest.raises(ProfileError) as refused:
        flat_profile().costs().device_s(3, 300)

    assert str(refused.value) == (
        "width 3 is not in profile m4-pro-qwen3-1.7b-4bit (widths: 1, 8); --interpolate-widths fills in between"
    )


@pytest.mark.parametrize("interpolated", [False, True])
@pytest.mark.parametrize("width", [0, 11])
def test_a_width_beyond_the_widest_is_refused(width: int, interpolated: bool) -> None:
    with pytest.raises(ProfileError) as refused:
        flat_profile("gb10-qwen3-8b-4bit").costs(interpolate_widths=interpolated).device_row(width)

    assert str(refused.value) == f"width {width} is not in profile gb10-qwen3-8b-4bit (widths: 1..10)"


def test_widths_are_filled_in_on_the_line_between_their_neighbours_and_noted() -> None:
    costs = flat_profile().costs(interpolate_widths=True)

    # 6.0 ms at width 1 and 13.6 ms at width 8, two sevenths of the way
    assert costs.sync_s(3, 300) == pytest.approx(0.0060 + (0.0136 - 0.0060) * 2 / 7)
    assert costs.widths == (1, 2, 3, 4, 5, 6, 7, 8)
    assert "widths 2..7 are interpolated between the measured 1, 8" in costs.notes


def test_nothing_is_noted_when_no_width_is_missing() -> None:
    profile = calibration.load("gb10-qwen3-8b-4bit")

    assert profile.costs(interpolate_widths=True) == profile.costs()


def test_the_notes_say_what_a_report_must() -> None:
    assert flat_profile().costs().notes == (
        "width 1 was not timed: its 6.0 ms are the pipelined 5.3 ms times 192/169, plain tokens/s with and without "
        "the pipeline",
        "the context of the measurement is not published; 300 is taken, as on the GB10",
        "measured at context 300, used for 1..2048",
        "run-ahead unlimited: the profile gives none",
        "prefill: not published; counted as 0 s",
    )
    assert MINE.costs().notes == (
        *MINE.notes,
        "measured at contexts 1, 512, 2048, linear in between, used for 1..2048",
        "prefill: measured",
    )


def test_a_prefill_table_is_linear_in_between_and_flat_below() -> None:
    costs = MINE.costs()

    assert costs.prefill_s(0) == 0.0
    assert [costs.prefill_s(tokens) for tokens in (1, 16, 512, 2048)] == [0.02, 0.02, 0.1, 0.5]
    assert costs.prefill_s(1280) == pytest.approx(0.3)  # half way between 512 and 2048


def test_a_prompt_beyond_a_prefill_table_is_refused() -> None:
    with pytest.raises(ProfileError) as refused:
        PrefillTable((16, 512), (0.02, 0.1)).seconds_for(513)

    assert str(refused.value) == "a prompt of 513 tokens is beyond the 512 that prefill was timed to"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": {2: 0.1}}, "device: must have width 1 (got 2)"),
        ({"device": {1: -0.1}}, "device[1]: must be at least 0 and below 1000 s (got -0.1)"),
        ({"device": {1: [0.1, 0.2]}}, "device[1]: must have 8 figures (got 2)"),
        (
            {"device": {1: [0.1, math.nan]}, "measured_at": (1, 8)},
            "device[1]: must be at least 0 and below 1000 s (got nan)",
        ),
        ({"contexts": range(0)}, "contexts: must be a range from at least 0 in steps of 1 (got range(0, 0))"),
        ({"contexts": range(1, 9, 2)}, "contexts: must be a range from at least 0 in steps of 1 (got range(1, 9, 2))"),
        ({"read_s": math.inf}, "read_s: must be at least 0 and below 1000 s (got inf)"),
        ({"run_ahead_s": math.nan}, "run_ahead_s: must be at least 0 (got nan)"),
    ],
)
def test_costs_made_by_hand_are_checked(settings: dict[str, Any], message: str) -> None:
    made: dict[str, Any] = {"name": "mine", "contexts": range(1, 9), "device": {1: 0.1}, **settings}

    with pytest.raises(ProfileError) as refused:
        Costs(**made)

    assert str(refused.value) == message


def test_a_profile_is_loaded_and_priced_in_a_moment() -> None:
    calibration.load("gb10-qwen3-8b-4bit").costs()
    begun = time.perf_counter()
    calibration.load("gb10-qwen3-8b-4bit").costs().device_row(8)

    # about 3 ms; the bound leaves room for a busy machine
    assert time.perf_counter() - begun < 0.1
