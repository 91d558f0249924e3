"""What a trial costs is kept down, and its figures are those of `simulate` all the same."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import calibration
import policies
from policies import Governor, Match, Prices, State
from policies.fixed import Always, Fixed
from simulator.oracle import Oracle
from simulator.simulation import run
from tests.tuning_requests import requests
from tuning.evaluation import Alone

PROFILES = ("gb10-qwen3-1.7b-4bit", "gb10-qwen3-8b-4bit")
COSTS = [calibration.shipped(name).costs() for name in PROFILES]


class Cautious(Always):
    """Proposes as many tokens as cost no more than 2.2 steps, on the machine at hand."""

    def __init__(self, most: int, prices: Prices) -> None:
        super().__init__(most)
        self._prices = prices

    def choose(self, state: State, match: Match) -> int:
        paid_s = 2.2 * self._prices.step_s(state.context)
        return max(
            (k for k in range(match.tokens + 1) if self._prices.sync_s(k + 1, state.context) <= paid_s), default=0
        )


@dataclass(frozen=True, kw_only=True)
class Priced(Fixed):
    """A policy that looks at its prices."""

    def governor(self, prices: Prices) -> Governor:
        return Cautious(self.max_draft, prices)


@pytest.mark.parametrize(
    "policy",
    [
        policies.load("gated"),
        policies.load("gated:ngram_min=1,max_draft=9,match=earliest"),
        policies.load("graded"),
        Priced(),
        Oracle(),
    ],
    ids=str,
)
def test_speedups_are_those_of_simulate_on_every_machine(policy: policies.Policy) -> None:
    given = requests(3)

    found = Alone(given, COSTS, most_draft=9).speedups(policy)

    for machine, costs in enumerate(COSTS):
        assert found[machine] == tuple(run(request, policy, costs).speedup for request in given)


def test_machines_share_a_schedule_unless_the_policy_looks_at_prices() -> None:
    given = requests(3)
    one, other = ([run(request, Priced(), costs).schedule for request in given] for costs in COSTS)

    assert one != other  # or the policy above would prove nothing
    assert [run(request, Fixed(), COSTS[0]).schedule for request in given] == [
        run(request, Fixed(), COSTS[1]).schedule for request in given
    ]


def test_tables_are_forgotten_and_made_again() -> None:
    evaluator = Alone(requests(1), COSTS[:1], most_draft=9)
    settings = [
        f"gated:ngram_max={longest},ngram_min={least}" for longest in range(1, 8) for least in range(1, longest + 1)
    ]

    first = [evaluator.speedups(policies.load(one)) for one in settings]

    assert [evaluator.speedups(policies.load(one)) for one in settings] == first
