"""What a row's forwards cost everybody: shares of a batched step, and what others lose to a proposal."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration import Costs, ProfileError, RowPrices, ServerCosts
from calibration.serving import ServedForward, StorageTable
from tests import strategies


def server(host_work_s: float = 0.0, run_ahead_s: float = math.inf) -> ServerCosts:
    """Return a server whose steps take 10, 16 and 21 ms of device time for 1 to 3 rows, and 2 ms of the host."""
    figures = {1: 0.010, 2: 0.016, 3: 0.021}
    steps = tuple(ServedForward(rows, (100,), (1, 400), (seconds,)) for rows, seconds in figures.items())
    one = Costs(
        "mine",
        range(1, 401),
        {1: 0.010, 2: 0.012, 8: 0.030},
        launch_s=0.0005,
        read_s=0.0015,
        host_work_s=host_work_s,
        run_ahead_s=run_ahead_s,
    )
    return ServerCosts(one, table=StorageTable(steps=steps))


@given(strategies.machines(), st.integers(1, 398), st.sampled_from([1, 2, 3, 8]))
def test_a_row_alone_pays_what_one_request_pays(costs: Costs, context: int, width: int) -> None:
    prices = RowPrices(ServerCosts(costs))

    assert prices.step_s(context) == costs.step_s(context)
    assert prices.sync_s(width, context) == pytest.approx(costs.sync_s(width, context))
    assert prices.overlap_s(context) == costs.overlap_s(context)


def test_two_rows_by_hand() -> None:
    prices = RowPrices(server()).among(2)

    # A pipelined step of both takes 16 ms, 8 each, and a synchronous one 18.
    assert prices.step_s(100) == pytest.approx(0.008)
    assert prices.overlap_s(100) == pytest.approx(0.002)
    assert prices.sync_s(1, 100) == pytest.approx(0.008 + 0.002)
    # A verify of 32 ms, and the other row's synchronous step of 12 ms, which emits a token worth 8.
    assert prices.sync_s(8, 100) == pytest.approx(0.032 + 0.012 - 0.008)


def test_three_rows_with_host_work_for_every_token() -> None:
    prices = RowPrices(server(host_work_s=0.001)).among(3)

    # The host's 2 + 3 ms hide behind 21 ms.
    assert prices.step_s(100) == pytest.approx(0.007)
    assert prices.overlap_s(100) == pytest.approx(0.005)
    # Its own work is left out: 23 ms and 2 of the others' work, less their two shares.
    assert prices.sync_s(1, 100) == pytest.approx(0.023 + 0.002 - 0.014)
    # A verify of 14 ms, a step of two rows of 18 ms and 2 of their work, less their two shares.
    assert prices.sync_s(2, 100) == pytest.approx(0.014 + 0.018 + 0.002 - 0.014)


@given(rows=st.integers(1, 3), work_s=st.sampled_from([0.0, 0.001]), ahead_s=st.sampled_from([math.inf, 0.0, 0.003]))
def test_a_synchronous_step_costs_a_row_one_overlap_more_than_its_share(
    rows: int, work_s: float, ahead_s: float
) -> None:
    prices = RowPrices(server(host_work_s=work_s, run_ahead_s=ahead_s)).among(rows)

    assert prices.sync_s(1, 100) + work_s == pytest.approx(prices.step_s(100) + prices.overlap_s(100))


def test_a_batch_without_a_cost_is_refused() -> None:
    prices = RowPrices(server()).among(4)

    with pytest.raises(ProfileError) as refused:
        prices.step_s(100)

    assert str(refused.value) == "profile mine has no cost of a step of 4 rows on dense storage (rows: 1, 2, 3)"


def test_a_row_far_ahead_of_the_others_takes_the_nearest_figures_of_a_batch() -> None:
    steps = (ServedForward(1, (100,), (1, 4000), (0.010,)), ServedForward(2, (100, 400), (1, 400), (0.016, 0.018)))
    one = Costs("mine", range(1, 4001), {1: 0.010, 2: 0.012})
    prices = RowPrices(ServerCosts(one, table=StorageTable(steps=steps)))

    # The batch is stepped at the mean context, which may well be inside.
    assert prices.among(2).step_s(3000) == prices.among(2).step_s(400) == pytest.approx(0.009)
    assert prices.among(2).sync_s(2, 3000) == pytest.approx(0.012 + 0.010 - 0.009)
    with pytest.raises(ProfileError):
        prices.step_s(4001)
