"""Traces of vllm-vcr, captured with the ids of the outputs: a request on every line, after one about the run.

The prompts' ids are in no such trace, only their number. As many ids that occur nowhere else stand in for them, so the
context is as long as it was and nothing is ever found in the prompt: a prediction is a lower bound for whoever copies
from it. Such requests are tagged `prompt-unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from traces.errors import TraceError, shown
from traces.fields import LARGEST_TOKEN, Finish, Tokens
from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Ids
from traces.importing.json_values import objects
from traces.lines import LONGEST_LINE_BYTES

ENDS: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "abort": "guard",
    "error": "guard",
    "repetition": "guard",
}
"""What ended a reply, by the engine's word for it."""

MOST_PROMPT_TOKENS = LONGEST_LINE_BYTES // 16
"""4 Mi: such an id takes up to 12 bytes of a trace's line, and the reply stands in it too."""


def read(file: str) -> Iterator[Exchange]:
    """Yield the requests of a trace.

    Raises:
        TraceError: with file and line, what is none.
    """
    found = objects(file)
    first = next(found)
    return each(file, found if "meta" in first[1] else chain([first], found), _request)


def _request(entry: Entry) -> Iterator[Exchange]:
    where, name, found = entry
    if found.get("output_token_ids") is None:
        raise TraceError(f"must have 'output_token_ids', which a capture has on request (got {keys.names(found)})")
    reply = keys.ids(found, "output_token_ids", "output_tokens")
    count = keys.value(found, "prompt_tokens")
    if type(count) is not int or not 1 <= count <= MOST_PROMPT_TOKENS:
        raise TraceError(f"prompt_tokens must be an integer from 1 to {MOST_PROMPT_TOKENS} (got {shown(count)})")
    finish = found.get("finish_reason")
    if finish is not None and not (isinstance(finish, str) and finish in ENDS):
        raise TraceError(f"finish_reason must be one of {', '.join(ENDS)} (got {shown(finish)})")
    arrival_s = None if found.get("arrival_ms") is None else keys.number(found, "arrival_ms") / 1e3
    said = Ids(_unlike(reply, count), reply)
    yield Exchange(where, name, said, None if finish is None else ENDS[finish], arrival_s, ("prompt-unknown",))


def _unlike(reply: list[Any], count: int) -> Tokens:
    """Return as many ids that a reply has not, from the largest down; an array, as a list takes ten times the memory.

    >>> _unlike([7, 2147483646, 9], 3).tolist()
    [2147483647, 2147483645, 2147483644]
    """
    lowest = LARGEST_TOKEN - count - len(reply)
    near = [token for token in reply if type(token) is int and lowest < token <= LARGEST_TOKEN]
    tokens = np.arange(LARGEST_TOKEN, lowest, -1, dtype=np.int64)
    return tokens[~np.isin(tokens, near)][:count].astype(np.int32)
