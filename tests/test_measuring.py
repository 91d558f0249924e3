"""Measuring an engine gives its costs back, and what disturbed the measurement is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibration
from calibration import Costs, Profile, ProfileError
from calibration.measuring import assembling, measuring, probes
from calibration.measuring.plan import Cell, Plan
from calibration.measuring.samples import Samples, read
from calibration.measuring.warnings import warnings
from calibration.prefill import Prefill, PrefillTable
from calibration.profile_file import SHIPPED
from calibration.provenance import Machine
from calibration.scripted_engine import ScriptedEngine

PLAN = Plan(widths=(1, 2, 5), contexts=(10, 100), rounds=3)
FLAT = Costs("m", range(1, 200), {1: 0.01, 2: 0.02, 5: 0.03}, prefill=PrefillTable((10, 100), (0.02, 0.1)))
ABOUT = assembling.Circumstances(
    "mine", Machine("A chip"), {"model": "m", "dtype": "float32"}, measured="2026-10-02", source="a test"
)


def measured(costs: Costs, plan: Plan = PLAN) -> measuring.Measurement:
    return measuring.measure(ScriptedEngine({}, costs), plan, lambda name: None)


def profiled(costs: Costs, plan: Plan = PLAN) -> Profile:
    return assembling.profile(measured(costs, plan).samples, ABOUT)


@st.composite
def machines(draw: st.DrawFn) -> Costs:
    host = st.sampled_from([0.0, 0.0005, 0.002, 0.004])
    launch_s, read_s = draw(host), draw(host)
    step_s = draw(st.floats(0.001, 0.02))
    return Costs(
        "drawn",
        range(1, 200),
        {1: step_s, 2: step_s * draw(st.floats(1, 2)), 5: step_s * draw(st.floats(1, 5))},
        launch_s=launch_s,
        read_s=read_s,
        run_ahead_s=step_s * draw(st.sampled_from([math.inf, 0.0, 0.1, 0.5])),
        prefill=PrefillTable((10, 100), (0.02, 0.1)),
    )


@settings(max_examples=200)
@given(costs=machines())
def test_measuring_the_script_gives_its_costs_back(costs: Costs) -> None:
    found = profiled(costs).costs()

    for context in (10, 100):
        assert found.step_s(context) == pytest.approx(costs.step_s(context), abs=1e-7)
        for width in (1, 2, 5):
            assert found.sync_s(width, context) == pytest.approx(costs.sync_s(width, context), abs=1e-7)
            assert found.device_s(width, context) == pytest.approx(costs.device_s(width, context), abs=1e-7)
        assert found.prefill_s(context) == pytest.approx(costs.prefill_s(context), abs=1e-7)
    assert found.launch_s + found.read_s == pytest.approx(costs.launch_s + costs.read_s, abs=1e-7)
    assert found.run_ahead_s == pytest.approx(costs.run_ahead_s, abs=1e-7)


@given(costs=machines())
def test_what_the_time_model_derives_is_what_is_measured(costs: Costs) -> None:
    plan = Plan(widths=(1, 2, 5), contexts=(10, 100), rounds=2, host_work_s=0.003)
    found = measured(costs, plan)
    profile = assembling.profile(found.samples, ABOUT)

    predicted = measuring.predicted(ScriptedEngine({}, profile.costs()), plan)

    assert len(predicted) == 4
    assert predicted == pytest.approx(found.checks, abs=1e-6)


def test_costs_that_grow_with_the_context_are_met_at_the_measured_ones() -> None:
    costs = Costs(
        "m",
        range(1, 200),
        {1: [0.01, 0.02], 2: [0.012, 0.024], 5: [0.02, 0.04]},
        launch_s=0.0005,
        read_s=0.0005,
        measured_at=(1, 199),
        prefill=PrefillTable((10, 199), (0.02, 0.1)),
    )

    found = profiled(costs).costs()

    for context in (10, 100):
        both_s = (costs.step_s(context) + costs.step_s(context + 1)) / 2
        assert found.step_s(context) == pytest.approx(both_s, abs=1e-7)  # a pipelined run moves on
        assert found.sync_s(5, context) == pytest.approx(costs.sync_s(5, context), abs=1e-6)


def test_what_a_forward_loses_is_met_where_the_host_does_more_than_build_and_read() -> None:
    seconds = {"sync": 0.0081, "pipelined": 0.0065, "build": 0.0011, "submit": 0.0053, "wait": 0.0016, "read": 0.0001}
    samples = Samples({Cell(kind, 1, 16): [figure] * 3 for kind, figure in seconds.items()})

    found = assembling.host(samples)

    assert (found.launch_s, found.read_s) == pytest.approx((0.0011, 0.0005))
    # Handing the forward over takes the host's time too, and it never ran further ahead than the overlap it saved.
    assert found.run_ahead_s == pytest.approx(0.0016)
    assert assembling.table(samples).pipelined_s == (0.0065,)


def test_long_prompts_are_timed_in_part() -> None:
    costs = Costs("m", range(1, 4000), {1: 0.01, 2: 0.02, 5: 0.03}, prefill=Prefill(per_token_s=0.01))
    engine = ScriptedEngine({}, costs)

    found = measuring.measure(engine, replace(PLAN, contexts=(10, 300, 3000)), lambda name: None)

    lengths = (10, 300, 3000)
    assert [found.samples.median_s(Cell("prefill", 0, one)) for one in lengths] == pytest.approx([0.1, 3.0, 30.0])
    assert engine.clock_s() < 30.0  # the rounds included


def test_a_short_prompt_that_costs_more_a_token_makes_no_long_one_dearer() -> None:
    prompts = PrefillTable((10, 300, 3000), (1.0, 2.45, 15.95))
    costs = Costs("m", range(1, 4000), {1: 0.01, 2: 0.02, 5: 0.03}, prefill=prompts)

    found = measuring.measure(
        ScriptedEngine({}, costs), replace(PLAN, contexts=(10, 300, 3000), rounds=1), lambda name: None
    )

    # 0.1 s for each of the first ten tokens, which share the reading of the weights among few, and 5 ms for the others.
    assert [found.samples.median_s(cell) for cell in found.samples.of("prefill")] == pytest.approx([1.0, 2.45, 15.95])


def test_the_default_plan_is_as_long_as_its_page_says() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "measure-your-machine.md").read_text(encoding="utf-8")

    assert Plan().steps == 553
    assert "five hundred and fifty measurements" in page


def test_every_cell_has_as_many_samples_as_there_were_rounds() -> None:
    found = measured(FLAT)

    kinds = {"sync", "pipelined", "build", "submit", "wait", "read"}
    assert {len(seconds) for cell, seconds in found.samples.cells.items() if cell.kind in kinds} == {3}
    assert {cell.width for cell in found.samples.of("first_use")} == {1, 2, 5}


class Compiling(ScriptedEngine):
    """Half a second slower in its first forward of width 5; width 2 is disturbed, later more than at first."""

    def __init__(self, costs: Costs) -> None:
        super().__init__({}, costs)
        self._more_s = {5: [0.5], 2: [0.001, *[0.004] * 6]}

    def forward(self, tokens: Sequence[int]) -> list[int]:
        if waiting := self._more_s.get(len(tokens)):
            self.work(waiting.pop(0))
        return super().forward(tokens)


def test_a_first_use_counts_where_no_later_forward_was_so_slow() -> None:
    found = measuring.measure(Compiling(FLAT), PLAN, lambda name: None).samples

    first_s = {cell.width: found.median_s(cell) for cell in found.of("first_use")}
    assert first_s == pytest.approx({1: 0.0, 2: 0.0, 5: 0.5})


@pytest.mark.parametrize("vocabulary", [3, 50_000])
def test_ids_that_differ_are_fed_and_all_of_them_known(vocabulary: int) -> None:
    class Small(ScriptedEngine):
        @property
        def vocabulary(self) -> int:
            return vocabulary

    fed = probes.tokens(Small({}, FLAT), 2000)

    assert set(fed) <= set(range(vocabulary))
    assert len(set(fed)) == min(vocabulary, probes.DISTINCT)


def test_what_the_time_model_derives_is_measured_in_every_fourth_round() -> None:
    found = measured(FLAT, replace(PLAN, rounds=12))

    assert {len(found.samples.cells[cell]) for cell in found.samples.cells if cell.kind in probes.DERIVED} == {3}


@pytest.mark.parametrize(
    ("token_s", "spent_s"),
    [(0.001, 3 * (0.01 + 0.29 + 2.0)), (0.2, (10 + 32 + 32) * 0.2)],
    ids=["two seconds of it, until five have passed", "32 tokens"],
)
def test_of_a_longer_prompt_as_much_is_timed_as_takes_some_seconds(token_s: float, spent_s: float) -> None:
    costs = Costs("m", range(1, 4000), {1: 1e-6, 2: 1e-6, 5: 1e-6}, prefill=Prefill(per_token_s=token_s))
    engine = ScriptedEngine({}, costs)

    measuring.measure(engine, replace(PLAN, contexts=(10, 300, 3000), rounds=1), lambda name: None)

    assert engine.clock_s() == pytest.approx(spent_s, abs=0.01)


def test_an_interrupted_measurement_keeps_its_whole_rounds() -> None:
    count = 0

    def interrupt(name: str) -> None:
        nonlocal count
        count += 1
        if count == PLAN.steps - 1:
            raise KeyboardInterrupt

    engine = ScriptedEngine({}, FLAT)
    found = measuring.measure(engine, PLAN, interrupt)

    assert (found.rounds, found.interrupted) == (2, True)
    assert assembling.profile(found.samples, ABOUT).cost.sync_runs == 2


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    profile = profiled(replace(FLAT, launch_s=0.001, run_ahead_s=0.002))

    profile.write(tmp_path / "p.yaml")

    assert calibration.load(str(tmp_path / "p.yaml")) == profile


def test_samples_survive_their_file(tmp_path: Path) -> None:
    samples = measured(FLAT).samples

    samples.write(tmp_path / "s.json")

    assert read(tmp_path / "s.json") == samples


def test_samples_drawn_again_come_to_profiles_about_the_first() -> None:
    samples = measured(FLAT).samples
    sync = Cell("sync", 5, 10)
    samples.cells[sync] = [0.029, 0.030, 0.032]

    drawn = assembling.drawn_again(assembling.profile(samples, ABOUT), samples, 20)

    assert {one.cost.sync_s[2][0] for one in drawn} == {0.029, 0.030, 0.032}
    assert {one.cost.sync_s[2][1] for one in drawn} == {0.03}


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("{}", "KeyError('kind')"),
        ('{"kind": "sync", "width": 1e999, "context": 1, "seconds": []}', "OverflowError("),
        ("[" * 100_000, "RecursionError("),
        ('{"kind": "read", "width": 1, "context": 16, "seconds": []}', "read width 1 at context 16 has []"),
        ('{"kind": "read", "width": 1, "context": 16, "seconds": [NaN]}', "read width 1 at context 16 has [nan]"),
    ],
)
def test_a_file_that_holds_no_samples_is_refused(tmp_path: Path, cells: str, why: str) -> None:
    (tmp_path / "s.json").write_text(f'{{"format": "breakeven-samples/1", "cells": [{cells}]}}')

    with pytest.raises(ProfileError) as refused:
        read(tmp_path / "s.json")
    assert str(refused.value).startswith(f"{tmp_path}/s.json: is no file of samples ({why}")


def test_samples_of_something_else_are_refused() -> None:
    samples = measured(FLAT).samples
    profile = assembling.profile(samples, ABOUT)
    read_cell = Cell("read", 1, PLAN.contexts[0])

    unread = Samples({cell: one for cell, one in samples.cells.items() if cell != read_cell})
    unsubmitted = Samples({cell: one for cell, one in samples.cells.items() if cell.kind != "submit"})
    uneven = Samples({cell: one[cell.kind == "pipelined" :] for cell, one in samples.cells.items()})
    for lacking in (Samples(), unread, unsubmitted, uneven):
        with pytest.raises(ProfileError, match="its samples lack what it is made of"):
            assembling.drawn_again(profile, lacking, 1)


def test_a_profile_came_of_its_own_samples_only() -> None:
    samples = measured(FLAT).samples
    profile = assembling.profile(samples, ABOUT)
    slower = Samples({cell: [2 * one for one in seconds] for cell, seconds in samples.cells.items()})
    narrower = Samples({cell: seconds for cell, seconds in samples.cells.items() if cell.width < 5})

    found = [assembling.came_of(profile, one) for one in (samples, slower, narrower, Samples())]

    assert found == [True, False, False, False]


@pytest.mark.parametrize("name", sorted(calibration.names()))
def test_every_shipped_profile_came_of_the_samples_beside_it(name: str) -> None:
    profile = calibration.shipped(name)
    beside = profile.provenance.samples if profile.provenance else None
    if beside is None:
        assert not name.startswith("epyc")  # the published ones say medians only
    else:
        assert assembling.came_of(profile, read(SHIPPED / beside))


@pytest.mark.parametrize("contexts", [(8,), (100,), (8, 9), (16, 18)])
def test_contexts_as_close_as_a_probe_is_long_can_be_measured(contexts: tuple[int, ...]) -> None:
    plan = Plan((1, 2), contexts, 2, host_work_s=0.001)
    profile = profiled(FLAT, plan)

    assert measuring.predicted(ScriptedEngine({}, profile.costs()), plan) == pytest.approx(measured(FLAT, plan).checks)


def noisy(seconds: list[float]) -> Samples:
    return Samples({Cell("sync", 1, 16): seconds, Cell("pipelined", 1, 16): [0.01] * len(seconds)})


def test_a_quiet_measurement_warns_of_nothing() -> None:
    assert warnings(noisy([0.01, 0.0101, 0.0099] * 4), 0.1) == []


def test_a_drift_is_said_with_what_to_do() -> None:
    samples = Samples({Cell("sync", 1, 16): list(np.linspace(0.010, 0.0106, 12))})

    assert warnings(samples, None) == [
        "forwards became 4.3 % slower from the first third of the rounds to the last; let the machine settle "
        "(temperature, other programs) and calibrate again"
    ]


def test_noisy_cells_are_counted_and_the_worst_is_named() -> None:
    assert warnings(noisy([0.01, 0.02, 0.01, 0.02]), None) == [
        "1 of 2 cells spread by more than 10% of their median (worst: sync width 1 at context 16, 67%); use more "
        "--rounds or a quieter machine"
    ]


@pytest.mark.parametrize(
    ("widths", "contexts", "message"),
    [
        ((2, 3), (16,), "--widths: must start at 1 and end at 65 at most (got (2, 3))"),
        ((1,), (3, 16), "--contexts: must be within 8..1048576 (got 3..16)"),
        ((1,), (16, 16), "--contexts: has 16 twice"),
    ],
)
def test_a_plan_that_cannot_be_measured_is_refused(
    widths: tuple[int, ...], contexts: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ProfileError) as refused:
        Plan(widths, contexts)
    assert str(refused.value) == message
