"""Pairs of what a user said and what the model answered; the model's chat form is put around a prompt of text."""

from __future__ import annotations

from collections.abc import Iterator

from traces.importing import two_columns
from traces.importing.exchange import Exchange, Text
from traces.importing.text_tokens import Message


def read(file: str, columns: tuple[str, str]) -> Iterator[Exchange]:
    """Yield the pairs of a file.

    Raises:
        TraceError: with file and line, what is no pair.
    """
    return two_columns.read(file, columns, lambda prompt, reply: Text((Message("user", prompt),), reply))
