"""Synthetic requests like those of a serving benchmark: one sentence over and over as the prompt, and a made-up reply.

No model said any of it. The ids are those of SmolLM2-135M-Instruct's tokenizer, as in the shipped recordings, so that
prompts are put in the form of its chat and words repeat as its words would. What a reply looks like is decided here:

- `plain`: the prompt only holds the paragraph. The reply quotes one sentence of it and then says as much that stands
  nowhere before, in turn. The reference's benchmark calls this style plain too, and its authors warn that it is
  copy-heavy; how much of the paragraph a real reply repeats depends on the model.
- `copy`: the prompt asks for the paragraph again, and the reply is the paragraph.
- `numbered_copy`: the lines of the prompt carry a number each, and the reply is the lines again. The latest earlier
  occurrence of a line's last words is followed by the number of the line before, so one proposal in each line fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, cycle, islice
from numbers import Integral
from typing import Any

from traces.errors import TraceError, shown
from traces.lines import LONGEST_LINE_BYTES
from traces.trace import Request

HEADER = {"model": "SmolLM2-135M-Instruct", "synthetic": "prompts and replies made by traces.synthetic, said by nobody"}
"""What a trace of these requests says of itself."""

SENTENCE = (5081, 5738, 260, 38993, 10573, 260, 4461, 6873, 1191, 28, 3942, 11726, 260, 7367, 429, 260, 1833, 28, 284,
            11002, 260, 3092, 2080, 338, 592, 3459, 18400, 30)  # fmt: skip
"""Every morning the baker opens the blue shutters, sweeps the flour from the step, and counts the loaves that were sold
yesterday."""

Maker = Callable[[str, int, int], Request]
"""What makes a request of an id, a length of the prompt and a length of the reply, as `plain` does."""

_SYSTEM = (1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2,
           198, 1, 4093, 198)  # fmt: skip
"""The system prompt of the model's chat form, and the head of the user's message."""
_ANSWER = (2, 198, 1, 520, 9531, 198)
"""The end of the user's message, and the head of the answer."""
_REPEAT = (48010, 260, 1695, 8510, 3869, 42, 1116)
"""Repeat the following paragraph exactly: and an empty line."""
_NEWLINE = 198
_DIGIT = 32
"""The id of the digit 0; those of the others follow."""
_FRESH = 20_000
"""The first of the ids that a plain reply uses once each; the sentence and the chat form have none of them."""
_FRESH_END = 34_000
_LONGEST = LONGEST_LINE_BYTES // 16
"""4 Mi tokens: many more, and a request is longer than a line of a trace may be."""


def plain(name: str, prompt_tokens: int, reply_tokens: int) -> Request:
    """Return a request with a paragraph of one sentence for its prompt, half of whose reply quotes it.

    Args:
        name: the request's id.
        prompt_tokens: length of the prompt, chat form included; at least 31, for the copies 38, and the paragraph
            is cut to fit.
        reply_tokens: length of the reply, at least 1, which ends at its limit.

    Raises:
        TraceError: the prompt has no room for its paragraph, the reply is empty, or one of them is above 4 Mi tokens.
    """
    return _request(name, (), cycle(SENTENCE), prompt_tokens, _half_quoted(), reply_tokens, "plain")


def copy(name: str, prompt_tokens: int, reply_tokens: int) -> Request:
    """Return a request that asks for a paragraph of one sentence, and gets it. Arguments and errors as for `plain`."""
    return _request(name, _REPEAT, cycle(SENTENCE), prompt_tokens, cycle(SENTENCE), reply_tokens, "copy")


def numbered_copy(name: str, prompt_tokens: int, reply_tokens: int) -> Request:
    """Return a request that asks for lines of one sentence each, with a number in front, and gets them.

    Arguments and errors as for `plain`.
    """
    return _request(name, _REPEAT, _lines(), prompt_tokens, _lines(), reply_tokens, "numbered_copy")


def _request(
    name: str,
    instruction: Sequence[int],
    text: Iterator[int],
    prompt_tokens: int,
    reply: Iterator[int],
    reply_tokens: int,
    style: str,
) -> Request:
    before, after = (*_SYSTEM, *instruction), _ANSWER
    form = len(before) + len(after)
    room = _length("prompt_tokens", prompt_tokens, form + 1) - form
    return Request.of(
        id=name,
        prompt=[*before, *islice(text, room), *after],
        reply=list(islice(reply, _length("reply_tokens", reply_tokens, 1))),
        finish="length",
        tags=["synthetic", style],
    )


def _length(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= _LONGEST:
        raise TraceError(f"{name} must be an integer from {least} to {_LONGEST} (got {shown(value)})")
    return int(value)


def _half_quoted() -> Iterator[int]:
    fresh = cycle(range(_FRESH, _FRESH_END))
    while True:
        yield from SENTENCE
        yield from islice(fresh, len(SENTENCE))


def _lines() -> Iterator[int]:
    return chain.from_iterable((*_digits(line), *SENTENCE, _NEWLINE) for line in count(1))


def _digits(number: int) -> Iterator[int]:
    return (_DIGIT + int(digit) for digit in str(number))
