"""When requests arrive."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, pvariance

import pytest

from simulator.serving.arrivals import arrivals
from simulator.serving.distribution import percentile, spread
from traces import Request


def requests(count: int) -> list[Request]:
    return [Request.of(id=str(place), prompt=[1], reply=[2], finish="length") for place in range(count)]


def times(process: str, count: int, seed: int = 0) -> list[float]:
    return [at_s for at_s, _ in arrivals(process).at(requests(count), seed)]


def gaps(process: str, count: int) -> list[float]:
    return [after - before for before, after in pairwise(times(process, count))]


def test_at_a_fixed_rate_the_gaps_are_equal_and_the_first_request_comes_at_once() -> None:
    assert times("rate:4/s", 4) == [0.0, 0.25, 0.5, 0.75]


def test_now_is_all_at_once() -> None:
    assert times("now", 3) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("process", "variation"), [("poisson:5/s", 1.0), ("gamma:5/s,4", 0.25), ("gamma:5/s,0.5", 2)])
def test_random_gaps_have_the_rate_and_the_variation_of_their_process(process: str, variation: float) -> None:
    found = gaps(process, 20_000)

    assert mean(found) == pytest.approx(1 / 5, rel=0.03)
    # The squared coefficient of variation of a gamma distribution is 1 / shape.
    assert pvariance(found) / mean(found) ** 2 == pytest.approx(variation, rel=0.06)


def test_a_seed_gives_the_same_times_again() -> None:
    assert times("poisson:5/s", 50, seed=3) == times("poisson:5/s", 50, seed=3)
    assert times("poisson:5/s", 50, seed=3) != times("poisson:5/s", 50, seed=4)


def test_percentiles_are_the_nearest_rank() -> None:
    twenty = {float(value): 1.0 for value in range(1, 21)}

    # The 10th, the 19th and the 20th of twenty; of a rate the same from the fast end.
    assert [percentile(twenty, percent) for percent in (50, 95, 99)] == [10, 19, 20]
    assert [percentile(twenty, percent, slow=True) for percent in (50, 95, 99)] == [11, 2, 1]
    assert spread({}) is None
