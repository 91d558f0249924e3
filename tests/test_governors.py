"""The governors' rules, as the reference pins them, and the break-even rule of `gated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from calibration import Costs
from policies import Drafter, Governor, NoLookup, PolicyError, State
from policies.fixed import Fixed
from policies.gated import Gated
from policies.graded import Graded
from policies.plain import Plain
from policies.policy import Policy

NO_PRICES = Costs("nobody asks", range(1, 2), {1: 0.0})


def governor(policy: Policy) -> Governor:
    return policy.governor(NO_PRICES)


def budget(asked: Governor, context: int = 10) -> int:
    return asked.budget(State(100, context, False, 0, 1))


def budgets(asked: Governor, landed: Sequence[int]) -> list[int]:
    """Ask, land what is given cut to the budget, and confirm a probe whenever nothing is granted."""
    granted = []
    for accepted in landed:
        granted.append(budget(asked))
        if granted[-1]:
            asked.record(min(accepted, granted[-1]))
        else:
            asked.confirm()
    return granted


def test_graded_starts_full_and_follows_the_average() -> None:
    graded = governor(Graded())
    granted = [budget(graded)]

    for landed in (6, 1):
        for _ in range(10):
            graded.record(landed)
        granted.append(budget(graded))

    assert granted == [7, 7, 4]


def test_graded_pauses_four_asks_then_eight_and_a_success_starts_over() -> None:
    graded = governor(Graded())

    def pause() -> int:
        for _ in range(3):
            graded.record(0)
        return next(asks for asks in range(100) if budget(graded))

    lengths = [pause(), pause(), pause()]
    graded.record(2)
    lengths.append(pause())
    lengths.append([pause() for _ in range(9)][-1])

    assert lengths == [4, 8, 16, 4, 32]


def test_graded_shrinks_over_misses() -> None:
    graded = governor(Graded())
    granted = []

    for _ in range(16):
        granted.append(budget(graded))
        if granted[-1]:
            graded.record(0)

    assert granted == [7, 7, 6, 0, 0, 0, 0, 4, 3, 2, 0, 0, 0, 0, 0, 0]


def test_fixed_always_grants_a_full_block_and_never_probes() -> None:
    fixed = governor(Fixed(max_draft=5))

    for _ in range(10):
        fixed.record(0)

    assert (budget(fixed), fixed.paused, fixed.probing) == (5, False, False)


def test_plain_grants_nothing() -> None:
    plain = governor(Plain())

    assert (budget(plain), plain.paused, plain.probing) == (0, True, False)


def test_gated_pauses_on_its_first_miss_and_stays_paused_until_a_probe_is_confirmed() -> None:
    gated = governor(Gated())
    granted = [budget(gated)]
    gated.record(0)
    granted += {budget(gated, context=11) for _ in range(1000)}
    paused = gated.paused and gated.probing
    gated.confirm()
    granted.append(budget(gated))
    gated.record(0)
    granted.append(budget(gated))

    assert (granted, paused) == ([2, 0, 2, 0], True)


def test_gated_widens_after_one_whole_narrow_block_and_narrows_before_it_pauses() -> None:
    gated = governor(Gated())
    granted = []

    for landed in (2, 5, 0, 0, 0):
        gated.record(landed)
        granted.append(budget(gated))

    # 1 -> 1.5 -> 3.25 -> 1.625 -> 0.8125, and the third miss in a row pauses.
    assert granted == [7, 7, 7, 2, 0]


def test_gated_grants_nothing_narrow_or_full() -> None:
    granted = budgets(governor(Gated()), [2, 7, 3, 1, 0, 1, 2, 6, 0, 4, 1, 2, 2, 0, 5])

    assert granted == [2, 7, 7, 7, 7, 2, 2, 7, 7, 7, 7, 7, 7, 7, 2]


def test_gated_averages_in_double_precision() -> None:
    gated = governor(Gated())

    for landed in (2, 0, *[1] * 24, 2):
        gated.record(landed)

    # 1.49999999 in double precision; in single it would round to 1.5 and open the full block.
    assert budget(gated) == 2


def test_gated_with_blocks_of_one_token() -> None:
    gated = governor(Gated(max_draft=1))
    granted = [budget(gated)]
    gated.record(1)
    granted.append(budget(gated))

    assert granted == [1, 1]


def test_a_confirmation_means_nothing_to_a_governor_that_drafts() -> None:
    gated = governor(Gated(full_at=1.75))
    gated.record(2)
    gated.record(2)
    gated.confirm()

    assert budget(gated) == 7


def test_gated_needs_as_many_probes_in_a_row_as_it_is_told() -> None:
    gated = governor(Gated(resume_confirmations=2))
    gated.record(0)
    granted = []

    for came_true in (True, False, True, True):
        (gated.confirm if came_true else gated.refute)()
        granted.append(budget(gated))

    assert granted == [0, 0, 0, 2]


def test_gated_probes_only_after_the_tokens_that_a_pause_must_emit() -> None:
    gated = governor(Gated(min_pause_tokens=3))
    budget(gated, context=10)
    gated.record(0)  # the round emitted one token: the pause begins at 11
    probing = []

    for context in (11, 12, 13, 14):
        budget(gated, context)
        probing.append(gated.probing)

    assert (probing, gated.paused) == ([False, False, False, True], True)


def test_below_break_even_two_drafted_rounds_pause() -> None:
    gated = governor(Gated(min_tokens_per_round=2.25))
    granted = []

    for landed in (1, 1):
        gated.record(landed)  # 2 tokens a round each time
        granted.append(budget(gated))

    assert (granted, gated.paused) == ([2, 0], True)


def test_at_break_even_drafting_goes_on() -> None:
    gated = governor(Gated(min_tokens_per_round=2.0))

    for landed in (1, 1, 1, 1):
        gated.record(landed)

    assert budget(gated) == 2


def test_the_break_even_average_gives_the_newest_round_half_the_weight() -> None:
    gated = governor(Gated(min_tokens_per_round=3.0))
    paused = []

    # 8 tokens, then (8 + 1) / 2 = 4.5, then (4.5 + 2) / 2 = 3.25, then (3.25 + 2) / 2 = 2.625
    for landed in (7, 0, 1, 1):
        gated.record(landed)
        paused.append(gated.paused)

    assert paused == [False, False, False, True]


def test_a_resume_forgets_the_break_even_average() -> None:
    gated = governor(Gated(min_tokens_per_round=2.5))
    gated.record(1)
    gated.record(1)
    gated.confirm()
    gated.record(1)

    # One round since the resume is no evidence.
    assert not gated.paused
    gated.record(1)
    assert gated.paused


def test_graded_does_not_round_up_what_lies_just_below_a_half() -> None:
    # Eight times this is the last double below one half; adding one half to it gives 1.0 exactly.
    graded = governor(Graded(multiplier=0.49999999999999994 / 8, max_draft=8))

    assert budget(graded) == 2


def test_what_is_no_governor_is_refused_before_it_is_asked() -> None:
    class Plainly:
        paused = probing = False

    plainly: Any = Plainly()
    with pytest.raises(PolicyError) as refused:
        Drafter(plainly, NoLookup(10), 10)

    assert str(refused.value) == "governor: must extend policies.Governor (got a Plainly)"
