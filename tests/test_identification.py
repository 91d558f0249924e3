"""How measurements become host and device time, and a pipelined step comes back out of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibration
from calibration.cost_table import CostTable
from calibration.costs import pipelined
from tests.test_profiles import GRID, MINE

PUBLISHED = replace(MINE, launch_s=None, read_s=None, run_ahead_s=None, host_work_s=0.0, notes=())


def test_a_device_bound_step_is_the_device_time_of_width_1() -> None:
    costs = calibration.load("gb10-qwen3-1.7b-4bit").costs()

    # launch + read = 6.343 - 5.174 ms; the device time of width 8 is 20.250 ms less that
    assert costs.device_s(1, 300) == 0.005174
    assert costs.launch_s == 0.0
    assert costs.read_s == pytest.approx(0.001169)
    assert costs.device_s(8, 300) == pytest.approx(0.020250 - 0.001169)
    assert costs.overlap_s(300) == pytest.approx(0.001169)


def test_a_host_bound_step_is_launch_and_read() -> None:
    cost = CostTable((300,), (1, 2048), (1, 2), (0.010,), ((0.014,), (0.016,)))
    costs = replace(PUBLISHED, bound="host", cost=cost).costs()

    assert costs.read_s == 0.010
    assert costs.device_s(1, 300) == pytest.approx(0.004)
    assert costs.device_s(2, 300) == pytest.approx(0.006)
    assert costs.step_s(300) == 0.010
    assert costs.overlap_s(300) == pytest.approx(0.004)


def test_with_several_contexts_only_the_synchronous_plain_step_gives_way() -> None:
    costs = PUBLISHED.costs()

    # overlaps of 1.0, 1.1 and 1.1 ms: the median is 1.1
    assert costs.read_s == pytest.approx(0.0011)
    assert [costs.step_s(context) for context in GRID.contexts] == pytest.approx(GRID.pipelined_s)
    assert [costs.sync_s(2, context) for context in GRID.contexts] == pytest.approx(GRID.sync_s[1])
    assert [costs.sync_s(1, context) for context in GRID.contexts] == pytest.approx([0.0112, 0.0123, 0.0156])


def test_a_plain_step_missed_by_more_than_a_hundredth_is_noted() -> None:
    cost = replace(GRID, sync_s=((0.0109, 0.0123, 0.0156), GRID.sync_s[1]))

    assert replace(PUBLISHED, cost=cost).costs().notes[0] == (
        "with one launch-and-read time of 0.0011 s for all contexts, the synchronous plain step differs from the "
        "measured one by up to 2.8% (context 1)"
    )


def test_launch_and_read_that_were_measured_are_taken_as_measured() -> None:
    costs = MINE.costs()

    assert (costs.launch_s, costs.read_s, costs.run_ahead_s) == (0.0004, 0.00065, 0.02)
    assert costs.device_s(1, 512) == 0.0112
    assert costs.device_s(2, 512) == pytest.approx(0.0138 - 0.00105)


def test_a_short_run_ahead_leaves_the_device_idle_in_every_pipelined_step() -> None:
    # 1.05 ms of host, of which 0.5 ms are hidden: each pipelined step has 0.55 ms without device work
    costs = replace(MINE, run_ahead_s=0.0005, host_work_s=0.0).costs()

    assert costs.device_s(1, 512) == pytest.approx(0.0112 - 0.00055)
    assert costs.step_s(512) == pytest.approx(0.0112)
    assert costs.overlap_s(512) == pytest.approx(0.0005)


times = st.integers(0, 64).map(lambda ticks: ticks / 64)


@given(device_s=times, launch_s=times, read_s=times, work_s=times, run_ahead_s=st.one_of(times, st.just(math.inf)))
def test_the_pipelined_step_is_what_two_clocks_settle_to(
    device_s: float, launch_s: float, read_s: float, work_s: float, run_ahead_s: float
) -> None:
    host_s, free_s, ends, reads = 0.0, 0.0, [], []
    for turn in range(400):
        # submit the next forward, then read the one before it: times are sixty-fourths, so all sums are exact
        free_s = max(host_s + launch_s, free_s) + device_s
        ends.append(free_s)
        host_s = max(host_s + launch_s, free_s - run_ahead_s)
        if turn:
            host_s = max(host_s, ends[turn - 1]) + read_s
            reads.append(host_s)
            host_s += work_s

    assert reads[-1] - reads[-101] == 100 * pipelined(device_s, launch_s + read_s + work_s, run_ahead_s)
