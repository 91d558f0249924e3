"""Data of ArcticInference's simulator of suffix decoding: pairs whose prompt is all that the model was fed.

A prompt of text is turned into ids as it stands, as that simulator does: no chat form is put around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from traces.importing import two_columns
from traces.importing.exchange import Exchange, Text


def read(file: str, columns: tuple[str, str]) -> Iterator[Exchange]:
    """Yield the pairs of a file.

    Raises:
        TraceError: with file and line, what is no pair.
    """
    return two_columns.read(file, columns, Text)
