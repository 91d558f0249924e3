"""Workloads of LLMServingSim: a request, or a session of requests, on every line.

A request has `input_tok_ids`, `output_tok_ids` and `arrival_time_ns`, and may count its ids in `input_toks` and
`output_toks`. A session has `sub_requests`; each of them arrives a while after the one before it has ended, so they
have no arrival of their own. Workloads without ids only say how long everything is, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traces.errors import TraceError, shown
from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Ids
from traces.importing.json_values import objects


def read(file: str) -> Iterator[Exchange]:
    """Yield the requests of a workload.

    Raises:
        TraceError: with file and line, what is none.
    """
    return each(file, objects(file), _requests)


def _requests(entry: Entry) -> Iterator[Exchange]:
    where, name, found = entry
    if "sub_requests" not in found:
        yield Exchange(where, name, _ids(found), arrival_s=keys.number(found, "arrival_time_ns") / 1e9)
        return
    for turn, request in enumerate(keys.listed(found, "sub_requests"), start=1):
        if not isinstance(request, dict):
            raise TraceError(f"sub_requests must be objects (got {shown(request)})")
        yield Exchange(where, f"{name}-{turn}", _ids(request))


def _ids(found: Mapping[str, Any]) -> Ids:
    return Ids(keys.ids(found, "input_tok_ids", "input_toks"), keys.ids(found, "output_tok_ids", "output_toks"))
