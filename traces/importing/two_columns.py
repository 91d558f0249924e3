"""Prompts and responses in two columns of a CSV, JSON or JSON Lines file, as text or as token ids.

A CSV cell of ids is a list as JSON writes it. All cells are of one kind, which the first prompt tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from traces import fields
from traces.errors import TraceError, shown
from traces.importing import keys
from traces.importing.csv_rows import rows
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Ids, Text
from traces.importing.json_values import objects

COLUMNS = ("prompt", "response")
"""What the two columns are called unless a user says otherwise."""


def read(file: str, columns: tuple[str, str], text: Callable[[str, str], Text]) -> Iterator[Exchange]:
    """Yield the pairs of a file, which is CSV if its name ends in `.csv` or `.csv.gz`.

    Args:
        file: as typed.
        columns: what the prompts' and the responses' column are called.
        text: what a prompt and a response of text mean.

    Raises:
        TraceError: with file and line, what is no pair.
    """
    in_csv = file.lower().removesuffix(".gz").endswith(".csv")
    found: Iterator[tuple[str, Mapping[str, Any]]] = rows(file, columns) if in_csv else _spread(objects(file), columns)
    kind: type | None = None

    def pair(entry: Entry) -> Iterator[Exchange]:
        nonlocal kind
        prompt, response = (keys.value(entry.values, column) for column in columns)
        if in_csv and kind is not str:
            # Among texts, one that looks like a list of ids is a text too.
            ids = _cell(prompt)
            if kind is list or isinstance(ids, list):
                prompt, response = ids, _cell(response)
        kind = kind or (list if isinstance(prompt, list) else str)
        for column, got in zip(columns, (prompt, response), strict=True):
            if not isinstance(got, kind):
                name = "a list of token ids" if kind is list else "a text"
                raise TraceError(f"{column} must be {name}, as the first prompt is (got {shown(got)})")
            if kind is str:
                fields.string(column, got)
        said = Ids(prompt, response) if kind is list else text(prompt, response)
        yield Exchange(entry.where, entry.name, said)

    return each(file, found, pair)


def _spread(
    found: Iterator[tuple[str, Mapping[str, Any]]], columns: tuple[str, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Spread an object of two whole columns over its rows: that is how pandas writes a table unless told otherwise."""
    for where, values in found:
        prompts, responses = (values.get(column) for column in columns)
        if isinstance(prompts, dict) and isinstance(responses, dict) and prompts.keys() == responses.keys():
            for row, prompt in prompts.items():
                yield where, dict(zip(columns, (prompt, responses[row]), strict=True))
        else:
            yield where, values


def _cell(text: str) -> Any:
    """Return the list of integers that a cell holds, else the cell.

    >>> _cell("[1, 2]"), _cell("[1, two]"), _cell("12")
    ([1, 2], '[1, two]', '12')
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):  # no list, too long an integer, or nested too deeply
            return text
        if all(type(token) is int for token in listed):
            return listed
    return text
