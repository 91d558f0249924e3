"""The break-even rule of `gated` on the server, tick by tick: what its users asked for."""

from __future__ import annotations

import pytest

import policies
from simulator.serving.server import Server
from simulator.serving.tick import Tick
from tests.checked_server import CheckedServer
from tests.cycle_model import COPY, cycle, kinds
from traces import Request

ASIDES = 5
LOW_YIELD = Request.of(
    id="low",
    prompt=[token for n in range(ASIDES) for token in (100 + n, 110 + n, 120 + n, 130 + n)],
    reply=[token for n in range(ASIDES) for token in (100 + n, 110 + n, 120 + n, 140 + n)],
    finish="length",
)
"""Repeats three of every four tokens of its prompt: two to be found by, and one that lands."""

RULE = "gated:min_tokens_per_round=2.5"


def served(policy: str, *requests: Request) -> list[Tick]:
    return CheckedServer(policy, Server(storage="dense")).run(*requests)


def test_a_row_that_lands_one_token_a_verify_never_pauses_without_the_rule() -> None:
    assert kinds(served("gated", LOW_YIELD)) == (
        "prefill sync verify sync sync verify sync sync verify sync sync verify sync sync verify"
    )


def test_with_the_rule_it_pauses_after_two_verifies_and_the_ticks_after_that_are_pipelined() -> None:
    ticks = served(RULE, LOW_YIELD)

    # Two tokens a verify are less than 2.5. The tick after the pause steps and submits; 12 tokens are left then, and
    # the last of them meets the limit in flight.
    assert kinds(ticks) == "prefill sync verify sync sync verify sync*" + 10 * " steady*" + " sync"
    assert not any(tick.worked.asked.get("low") for tick in ticks[6:])


def test_one_verify_is_no_evidence() -> None:
    ticks = served("gated:min_tokens_per_round=9", LOW_YIELD)

    assert [tick.worked.kind for tick in ticks].count("verify") == 2


def test_a_row_that_copies_keeps_verifying_under_the_rule() -> None:
    ticks = served(RULE, cycle("copy", COPY, 28))

    # Three tokens from the narrow block, then eight a verify.
    assert kinds(ticks) == "prefill verify verify verify verify"
    assert [tick.worked.emitted["copy"] for tick in ticks[1:]] == [3, 8, 8, 8]


@pytest.mark.parametrize("policy", ["gated:resume_confirmations=1,min_pause_tokens=0", "gated:min_tokens_per_round=1"])
@pytest.mark.parametrize("requests", [(LOW_YIELD,), (cycle("copy", COPY, 28), LOW_YIELD)])
def test_without_a_threshold_that_bites_every_tick_is_the_reference_s(
    policy: str, requests: tuple[Request, ...]
) -> None:
    assert [tick.document() for tick in served(policy, *requests)] == [
        tick.document() for tick in served("gated", *requests)
    ]


def test_fixed_knows_no_rule() -> None:
    policy = policies.load("fixed", {"min_tokens_per_round": "2.5", "resume_confirmations": "2"})
    server = CheckedServer(policy, Server(storage="dense"))

    ticks = server.run(LOW_YIELD)

    assert policy == policies.load("fixed")
    assert kinds(ticks) == "prefill sync verify sync sync verify sync sync verify sync sync verify sync sync verify"


def test_of_two_rows_each_decides_on_its_own_evidence() -> None:
    ticks = served(RULE, LOW_YIELD, cycle("copy", COPY, 80))

    low = [tick.worked.asked["low"] for tick in ticks if "low" in tick.worked.asked]
    verifying = [{one.id for one in tick.worked.verify} for tick in ticks if tick.worked.verify]
    # The low row proposes in its second and its fifth ask and then never again; the copy verifies in every tick.
    assert [place for place, tokens in enumerate(low) if tokens] == [1, 4]
    assert verifying == [{"copy"}, {"low", "copy"}, {"copy"}, {"copy"}, {"low", "copy"}, *6 * [{"copy"}]]
    # Alone, the paused row is pipelined at once.
    assert kinds(ticks) == "prefill prefill" + 11 * " verify" + " sync*" + 4 * " steady*" + " sync"


def resumes(policy: str) -> int:
    """Return how many tokens were emitted when a row that paused and then copies verified again."""
    words = [*range(200, 240)]
    request = Request.of(
        id="late", prompt=[*LOW_YIELD.prompt, *words], reply=[*LOW_YIELD.reply[:8], *words], finish="length"
    )
    emitted, verifies = 0, 0
    for tick in served(policy, request):
        verifies += len(tick.worked.verify)
        if verifies == 3:
            return emitted
        emitted += tick.worked.emitted["late"]
    raise AssertionError("never resumed")


def test_resuming_takes_as_much_evidence_as_it_is_told() -> None:
    # Paused after 8 tokens. Words 200 and 201 are needed to be found; the probe claims 202 and 203, which have come
    # when 12 tokens are emitted. That ask finds 204 with a step in flight, so one more token is read before the verify.
    assert resumes(RULE) == 13
    # The next probe is opened in the ask that settles the one before, and claims two tokens more.
    assert resumes(f"{RULE},resume_confirmations=2") == 15
    assert resumes(f"{RULE},resume_confirmations=3") == 17
    # No probe before the pause has emitted ten tokens, at 18; it is settled two later.
    assert resumes(f"{RULE},min_pause_tokens=10") == 21


@pytest.mark.parametrize(("wait", "quiet"), [(2, "sync sync sync*"), (1, "sync sync*"), (0, "sync*")])
def test_the_wait_until_ticks_are_pipelined_again_after_a_verify(wait: int, quiet: str) -> None:
    request = Request.of(id="r", prompt=[50, 51, 52, 53, 50, 51], reply=[52, 53, 1, 2, 3, 4, 5, 6], finish="length")

    ticks = served(f"gated:pipeline_after={wait}", request)

    assert kinds(ticks).startswith(f"prefill verify {quiet} steady*")


def test_a_verify_that_pauses_its_row_waits_for_nothing() -> None:
    waits = [served(f"{RULE},pipeline_after={wait}", LOW_YIELD) for wait in (2, 9)]

    assert kinds(waits[0]) == kinds(waits[1])
