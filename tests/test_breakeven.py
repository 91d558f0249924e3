"""The policy `breakeven`: its thresholds follow from prices, and where nothing can pay it decodes plainly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibration
import policies
import traces
from calibration import Costs, RowPrices, ServerCosts
from calibration.serving import ServedForward, StorageTable
from policies import Governor, Match, Prices, State
from policies.breakeven import Breakeven
from policies.plain import Plain
from simulator import run
from simulator.recorded import Recording
from tests import strategies
from traces import Request

STEP_S = 0.010
FOUND = Match(7, 3)


def machine(lost: float = 0.2, width: float = 0.2, **widths: float) -> Costs:
    """Return a machine whose width w costs 1 + width * (w - 1) steps on the device, and `lost` steps of the host."""
    device = {w: STEP_S * (1 + width * (w - 1)) for w in range(1, 66)}
    device |= {int(name[1:]): STEP_S * steps for name, steps in widths.items()}
    return Costs("a machine", range(1, 4097), device, read_s=lost * STEP_S)


def asked(governor: Governor, *, in_flight: bool = True, streak: int = 0, rows: int = 1) -> int:
    """Ask where seven tokens are found, and return how many are proposed."""
    state = State(1000, 300, in_flight, streak, rows)
    return governor.choose(state, FOUND) if governor.budget(state) else 0


def confirmed(prices: Prices, times: int = 20, policy: Breakeven | None = None) -> Governor:
    """Return a governor that has seen so many probes come true."""
    governor = (policy or Breakeven()).governor(prices)
    for _ in range(times):
        governor.confirm()
    return governor


def proofs(prices: Prices, rows: int = 1) -> int:
    """Return after how many true probes in a row it resumes."""
    governor = confirmed(prices, 0)
    for count in range(100):
        if asked(governor, rows=rows):
            return count
        governor.confirm()
    return 100


def test_it_begins_with_a_pause_and_probes() -> None:
    governor = confirmed(machine(), 0)

    assert (asked(governor), governor.paused, governor.probing) == (0, True, True)


def test_a_first_guess_counts_two_trials_and_later_positions_take_after_earlier_ones() -> None:
    # A probe lands two tokens. The first is then given (1 + 2 * 0.5) / (1 + 2) = 0.667, the second, if the first
    # landed, (1 + 2 * 0.667) / 3 = 0.778, and so is every further one. Together they emit, for 1 to 3 proposals,
    # 1.667, 2.185 and 2.588 tokens, so these are the dearest widths in steps that pay without any lost overlap.
    def proposed(**widths: float) -> int:
        return asked(confirmed(machine(lost=0.0, width=1.0, **widths), 1))

    assert (proposed(w2=1.66), proposed(w2=1.67)) == (1, 0)
    assert (proposed(w3=2.18), proposed(w3=2.19)) == (2, 0)
    assert (proposed(w4=2.58), proposed(w4=2.59)) == (3, 0)


def test_a_probe_that_failed_is_blamed_on_both_of_its_tokens() -> None:
    # Before it, the first lands with 1/2 and both with 1/4. So it failed at the first in 2 of 3 cases, and the first
    # has landed 1/3 time: (1/3 + 1) / 3 = 0.444. A probe that comes true then makes it
    # (7/8 * 1/3 + 1 + 1) / (7/8 + 1 + 2) = 0.591.
    def proposed(steps: float) -> int:
        governor = Breakeven().governor(machine(lost=0.0, width=1.0, w2=steps))
        governor.refute()
        governor.confirm()
        return asked(governor)

    assert (proposed(1.59), proposed(1.60)) == (1, 0)


def test_a_proposal_pays_for_the_overlap_that_is_lost_where_it_is_made() -> None:
    def proposed(*, in_flight: bool, streak: int) -> int:
        governor = confirmed(machine(lost=0.2, width=0.5))
        for _ in range(3):
            asked(governor, in_flight=False)
            governor.record(1)
        return asked(governor, in_flight=in_flight, streak=streak)

    # Three overlaps are lost in flight, two after two plain rounds, one after one, none right behind a verify.
    assert [proposed(in_flight=False, streak=streak) for streak in (0, 1, 2)] == [2, 2, 0]
    assert proposed(in_flight=True, streak=0) == 0


def test_a_refusal_pauses_and_only_a_probe_that_comes_true_ends_that() -> None:
    costs = machine(lost=0.2, width=0.5)
    governor = confirmed(costs)
    asked(governor)
    while not governor.paused:
        governor.record(0)
    paused = [asked(governor) for _ in range(3)]
    governor.refute()
    paused.append(asked(governor))
    for _ in range(20):
        governor.confirm()

    assert paused == [0, 0, 0, 0]
    assert asked(governor) == 7


def test_misses_narrow_the_proposal_and_then_pause() -> None:
    governor = confirmed(calibration.load("gb10-qwen3-1.7b-4bit").costs())
    proposed = [asked(governor)]

    while proposed[-1]:
        governor.record(0)
        proposed.append(asked(governor, in_flight=False))

    assert proposed == [7, 7, 7, 2, 2, 0]


def test_no_width_is_chosen_that_another_beats() -> None:
    # On this machine eight positions cost less than seven, so six tokens are never proposed where seven are found.
    costs = calibration.load("gb10-qwen3-8b-4bit").costs()

    chosen = {asked(confirmed(costs, probes)) for probes in range(30)}

    assert 7 in chosen
    assert not chosen & {5, 6}


def test_the_dearer_the_lost_overlap_the_more_evidence_a_resume_takes() -> None:
    needed = [proofs(machine(lost=lost)) for lost in (0.0, 0.2, 0.4, 0.6)]

    assert needed == sorted(needed)
    assert needed[0] < needed[-1] < 100


def test_two_rows_need_more_evidence_than_one() -> None:
    steps = tuple(ServedForward(rows, (300,), (1, 4096), (seconds,)) for rows, seconds in ((1, 0.010), (2, 0.012)))
    prices = RowPrices(ServerCosts(machine(), table=StorageTable(steps=steps)))

    # A tick of both emits two tokens in 12 ms, and a verify keeps the other row waiting.
    assert proofs(prices, rows=1) < proofs(prices, rows=2)


@given(
    request=strategies.requests(),
    work_s=st.sampled_from([0.0, 0.002]),
    lost=st.sampled_from([0.0, 0.3]),
    doubt=st.sampled_from([0.01, 2.0]),
)
def test_where_a_verify_costs_as_much_as_its_tokens_every_reply_is_decoded_plainly(
    request: Request, work_s: float, lost: float, doubt: float
) -> None:
    costs = replace(machine(lost=lost, width=1.0), host_work_s=work_s)
    recording = Recording(request)

    drafting = recording.schedule(Breakeven(doubt=doubt), costs)

    assert drafting.codes == recording.schedule(Plain(), costs).codes


@pytest.mark.parametrize("name", ["copy", "long_copy", "edit_code", "edit_json"])
@pytest.mark.parametrize("profile", [name for name in calibration.names() if name.startswith("gb10")])
def test_what_gated_gains_on_copies_and_edits_is_kept(profile: str, name: str) -> None:
    assert gain(profile, name, "breakeven") >= 0.9 * gain(profile, name, "gated")


@pytest.mark.parametrize("name", ["chat", "story", "email"])
@pytest.mark.parametrize("profile", [name for name in calibration.names() if name.startswith("gb10")])
def test_prose_loses_less_than_one_percent(profile: str, name: str) -> None:
    assert gain(profile, name, "breakeven") > -0.01


def gain(profile: str, name: str, policy: str) -> float:
    """Return by how much decoding a recording is faster than plain decoding."""
    costs = calibration.load(profile).costs()
    runs = [run(request, policies.load(policy), costs) for request in traces.load(name).requests]
    return sum(one.plain_decode_s for one in runs) / sum(one.decode_s for one in runs) - 1
