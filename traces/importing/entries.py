"""The entries of a file, one by one: what each of them means is the format's, where it stands is told here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from traces.errors import TraceError

T = TypeVar("T")


class Entry(NamedTuple):
    """An object of a JSON file, or a row of a CSV file by column."""

    where: str
    """File and line, as a message begins."""
    name: str
    """The file's stem and the entry's number in it, from 1."""
    values: Mapping[str, Any]


def each(
    file: str, found: Iterable[tuple[str, Mapping[str, Any]]], meaning: Callable[[Entry], Iterable[T]]
) -> Iterator[T]:
    """Yield what every entry of a file means.

    Args:
        file: as typed.
        found: where each entry begins, and what it holds.
        meaning: what one entry means, one thing or several.

    Raises:
        TraceError: what `meaning` refuses, with file and line.
    """
    stem = Path(file).stem
    for number, (where, values) in enumerate(found, start=1):
        try:
            meant = list(meaning(Entry(where, f"{stem}-{number}", values)))
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from None
        yield from meant
