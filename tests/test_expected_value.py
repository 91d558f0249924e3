"""The policy `expected_value`: what it proposes follows from prices, the match's length and what came true before."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

import calibration
import policies
import traces
from calibration import Costs
from policies import Governor, Match, Prices, State
from policies.expected_value import ExpectedValue
from policies.plain import Plain
from simulator import run
from simulator.oracle import Oracle
from simulator.recorded import Recording
from tests import strategies
from traces import Request

STEP_S = 0.010
PROSE = ("chat", "email", "story", "summary")
SHIPPED = (*PROSE, "copy", "edit_code", "edit_json", "long_copy")


def machine(width: float, lost: float = 0.2) -> Costs:
    """Return a machine whose width w costs 1 + width * (w - 1) steps on the device, and `lost` steps of the host."""
    device = {w: STEP_S * (1 + width * (w - 1)) for w in range(1, 66)}
    return Costs("a machine", range(1, 4097), device, read_s=lost * STEP_S)


def fresh(prices: Prices, **settings: float) -> Governor:
    """Return a governor of a lookup that finds three tokens at most, however long the match is."""
    texts = {name: str(value) for name, value in settings.items()}
    return policies.load("expected_value", {"ngram_max": "3", **texts}).governor(prices)


def asked(governor: Governor, context: int, length: int = 3, *, in_flight: bool = False, rows: int = 1) -> int:
    """Ask where seven tokens are found behind a suffix of some length, and return how many are proposed."""
    state = State(1000, context, in_flight, 0, rows)
    assert governor.budget(state) == 7
    return governor.choose(state, Match(7, length))


def followed(governor: Governor, tokens: int, start: int = 100) -> int:
    """Let a match come true token by token without proposing, and return the context behind it."""
    for context in range(start, start + tokens):
        asked(governor, context, in_flight=True)
    return start + tokens


def test_a_match_that_goes_on_is_trusted_more_and_more() -> None:
    # Width w costs 1.2 + 0.4 (w - 1) steps: a further token pays once it is likelier than 0.4 to land.
    governor = fresh(machine(0.4), even_at=4.0, growth=2.0, surprise=0.0)

    proposed = [asked(governor, context, 2 if context == 100 else 3) for context in range(100, 106)]

    # Odds of (n/4)^2 behind n tokens. Of five, 0.61 and 0.42 land: 2.03 tokens for 2.0 steps. Of four, 1.5 for 1.6.
    assert proposed == [0, 0, 0, 2, 3, 4]


def test_the_most_profitable_number_is_proposed() -> None:
    # Even odds at every length: the n-th token lands with 1/2^n. A position costs 0.2, so two pay and a third does not.
    governor = fresh(machine(0.2, lost=0.0), growth=0.0)

    assert asked(governor, 100) == 2


def test_nothing_is_proposed_where_a_position_costs_as_much_as_a_step() -> None:
    governor = fresh(machine(1.0))

    assert asked(governor, followed(governor, 60)) == 0


def test_a_drain_has_to_pay_for_the_overlap_that_it_loses() -> None:
    # A verify of two gains 1 + 1/2 + 1/4 - 1.4 steps less a lost overlap, if the token in flight comes true: 0.35 - l,
    # half the time, is more than l up to 0.1167.
    assert asked(fresh(machine(0.2, lost=0.11), growth=0.0), 100, in_flight=True)
    assert not asked(fresh(machine(0.2, lost=0.12), growth=0.0), 100, in_flight=True)


def test_a_match_is_longer_than_what_is_looked_up_and_ends_with_a_gap() -> None:
    governor = fresh(machine(0.6))

    end = followed(governor, 40)
    assert asked(governor, end) == 7
    governor.budget(State(1000, end + 1, False, 0, 1))  # and nothing is found
    assert asked(governor, end + 2) < 7


def test_what_became_of_a_match_is_unknown_where_nobody_asked() -> None:
    silent, failed, fresh_row = (fresh(machine(0.1), surprise=4.0) for _ in range(3))
    for governor in (silent, failed):
        followed(governor, 1)
    failed.budget(State(1000, 101, False, 0, 1))

    proposed = [asked(governor, 110) for governor in (silent, failed, fresh_row)]

    assert proposed[0] == proposed[2] > proposed[1]


def test_a_whole_block_that_lands_lengthens_the_match() -> None:
    one, other = fresh(machine(0.4), surprise=0.0), fresh(machine(0.4), surprise=0.0)
    asked(one, followed(one, 10))
    one.record(7)

    # Ten tokens and those of the block are known to match, and the token behind the block.
    assert asked(one, 118) == asked(other, followed(other, 18)) == 7


def test_a_row_that_fares_badly_ends_up_proposing_nothing() -> None:
    governor = fresh(machine(0.2), surprise=0.2)
    rounds = 0
    while asked(governor, 100 + 10 * rounds) and rounds < 100:
        governor.record(0)
        rounds += 1

    assert 0 < rounds < 20


def test_a_row_is_seen_to_fare_well_without_a_proposal() -> None:
    governor, wary = fresh(machine(0.5), surprise=0.3), fresh(machine(0.5), surprise=0.3)
    # Matches that go on for four tokens, or not at all.
    for start in range(100, 300, 10):
        followed(governor, 5, start)
        followed(wary, 1, start)

    assert asked(governor, 400) > 0
    assert asked(wary, 400) == 0


def test_other_rows_make_a_verify_dearer() -> None:
    class Shared:
        """Prices that double a verify's positions among two rows."""

        def __init__(self, rows: int = 1) -> None:
            self._costs = machine(0.3 * rows)

        def step_s(self, context: int) -> float:
            return self._costs.step_s(context)

        def sync_s(self, width: int, context: int) -> float:
            return self._costs.sync_s(width, context)

        def overlap_s(self, context: int) -> float:
            return self._costs.overlap_s(context)

        def among(self, rows: int) -> Shared:
            return Shared(rows)

    assert asked(fresh(Shared()), 100, rows=1) > asked(fresh(Shared()), 100, rows=2)


@given(request=strategies.requests())
def test_where_nothing_can_pay_it_decodes_plainly(request: Request) -> None:
    costs = machine(1.0)

    recording = Recording(request)
    mine, plain = (recording.schedule(policy, costs) for policy in (ExpectedValue(), Plain()))

    assert mine.drafted_rounds == mine.drains == 0
    assert mine.generated == plain.generated


@pytest.mark.parametrize("name", SHIPPED)
def test_a_dear_width_costs_nothing_on_any_recording(name: str) -> None:
    [request] = traces.load(name).requests

    result = run(request, ExpectedValue(), machine(0.95, lost=0.05))

    assert result.decode_speedup is not None
    assert result.decode_speedup > 0.99


def test_it_gains_most_of_what_the_oracle_does_and_spares_prose() -> None:
    costs = calibration.shipped("gb10-qwen3-1.7b-4bit").costs()
    speedups = {
        policy: {name: run(traces.load(name).requests[0], policy, costs).decode_speedup or 0.0 for name in SHIPPED}
        for policy in (ExpectedValue(), policies.load("breakeven"), policies.load("gated"), Oracle())
    }
    gains = [
        math.exp(sum(math.log(speedup) for speedup in found.values()) / len(found)) - 1 for found in speedups.values()
    ]

    mine, breakeven, gated, oracle = gains
    assert mine > 0.6 * oracle
    assert mine > breakeven > gated
    assert min(speedups[ExpectedValue()][name] for name in PROSE) > 0.98
