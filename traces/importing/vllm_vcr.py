"""Traces of vllm-vcr, captured with the ids of the outputs: a request on every line, after one about the run.

The prompts' ids are in no such trace, only their number. As many ids that occur nowhere else stand in for them, so the
context is as long as it was and nothing is ever found in the prompt: a prediction is a lower bound for whoever copies
from it. Such requests are tagged `prompt-unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from traces.errors import TraceError, shown
from traces.fields import LARGEST_TOKEN, Finish
from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Ids
from traces.importing.json_values import objects

ENDS: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "abort": "guard",
    "error": "guard",
    "repetition": "guard",
}
"""What ended a reply, by the engine's word for it."""


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
        raise TraceError(f"must have 'output_token_ids', which a capture has on request (got {', '.join(found)})")
    reply = keys.ids(found, "output_token_ids", "output_tokens")
    count = keys.value(found, "prompt_tokens")
    if type(count) is not int or not 1 <= count <= LARGEST_TOKEN // 2:
        raise TraceError(f"prompt_tokens must be an integer >= 1 (got {shown(count)})")
    finish = found.get("finish_reason")
    if finish is not None and finish not in ENDS:
        raise TraceError(f"finish_reason must be one of {', '.join(ENDS)} (got {shown(finish)})")
    arrival_s = None if found.get("arrival_ms") is None else keys.number(found, "arrival_ms") / 1e3
    said = set(reply)
    prompt = list(islice((token for token in range(LARGEST_TOKEN, 0, -1) if token not in said), count))
    yield Exchange(where, name, Ids(prompt, reply), finish and ENDS[finish], arrival_s, ("prompt-unknown",))
