"""Generations of SpecDecode-Bench: `prompt_token_ids` and `generated_token_ids` on every line.

What else a line has, such as how much each of its own methods accepted at every position, is not read: a replay finds
that out by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Ids
from traces.importing.json_values import objects


def read(file: str) -> Iterator[Exchange]:
    """Yield the generations of a file.

    Raises:
        TraceError: with file and line, what is none.
    """
    return each(file, objects(file), _generation)


def _generation(entry: Entry) -> Iterator[Exchange]:
    where, name, found = entry
    yield Exchange(where, name, Ids(keys.ids(found, "prompt_token_ids"), keys.ids(found, "generated_token_ids")))
