"""Synthetic requests: what they consist of, and what prompt lookup makes of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import traces
from policies import match_table
from tests.trace_lines import refusal
from traces import Request, synthetic

MAKERS = (synthetic.plain, synthetic.copy, synthetic.numbered_copy)


@pytest.mark.parametrize("make", MAKERS)
def test_prompts_and_replies_have_the_lengths_asked_for(make: synthetic.Maker) -> None:
    request = make("mine", 512, 128)

    assert (len(request.prompt), len(request.reply), request.max_tokens) == (512, 128, 128)
    assert request.tags == ("synthetic", make.__name__)
    assert request == make("mine", 512, 128)


def test_the_chat_form_is_that_of_the_shipped_recordings() -> None:
    recorded = traces.load("copy").requests[0].prompt.tolist()

    request = synthetic.copy("mine", 300, 8).prompt.tolist()

    assert request[:25] == recorded[:25]
    assert request[-6:] == recorded[-6:]


def test_a_copy_repeats_the_paragraph_of_its_prompt() -> None:
    request = synthetic.copy("mine", 512, 100)

    start = request.prompt.tolist().index(synthetic.SENTENCE[0])
    assert request.reply.tolist() == request.prompt[start : start + 100].tolist()


def test_a_numbered_copy_repeats_the_lines_of_its_prompt() -> None:
    request = synthetic.numbered_copy("mine", 1024, 400)

    # Line 1, with its digit (33) in front, begins the reply. Lines 1 to 9 have 30 tokens each, 10 to 12 one more.
    start = request.prompt.tolist().index(33)
    assert request.reply.tolist() == request.prompt[start : start + 400].tolist()
    assert [33, 34, *synthetic.SENTENCE, 198] == request.reply[332:363].tolist()


def test_half_of_a_plain_reply_stands_nowhere_before() -> None:
    request = synthetic.plain("mine", 512, 112)

    before = {*request.prompt.tolist(), *synthetic.SENTENCE}
    fresh = [token for token in request.reply.tolist() if token not in before]
    assert len(fresh) == len(set(fresh)) == 56


@pytest.mark.parametrize(("make", "shares"), [(synthetic.copy, {1.0}), (synthetic.numbered_copy, {0.0, 1 / 7, 2 / 7})])
def test_what_lands_of_full_proposals(make: synthetic.Maker, shares: set[float]) -> None:
    request = make("mine", 1024, 200)
    table = match_table(request.prompt, request.reply, ngram_max=3, ngram_min=2, match="latest", cap=7).lookup(7)

    contexts = range(1024 + 32, 1024 + 190)
    landed = {table.true_tokens(context) / 7 for context in contexts if table.find(context) == 7}

    assert shares <= landed


@pytest.mark.parametrize(("make", "least"), [*zip(MAKERS, (31, 38, 38), strict=True)])
def test_a_length_that_cannot_be_is_refused(make: Callable[..., Request], least: int) -> None:
    def refused(*lengths: object) -> str:
        return refusal(lambda: make("mine", *lengths))

    assert len(make("mine", least, 1).prompt) == least
    for got in (least - 1, 0, -1, 2**22 + 1, 10**30, 40.0, True):
        assert refused(got, 8) == f"prompt_tokens must be an integer from {least} to 4194304 (got {got})"
    for wrong in (0, -1, 10**30, "8"):
        assert refused(512, wrong) == f"reply_tokens must be an integer from 1 to 4194304 (got {wrong!r})"
