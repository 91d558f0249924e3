"""The rows of a CSV file by column, each with the line at which it begins."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from traces.errors import TraceError, place
from traces.importing import keys
from traces.importing.json_values import read_text
from traces.lines import LONGEST_LINE_BYTES


def rows(file: str, columns: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield where each row begins, as file and line, and what it holds in some columns; blank lines are passed over.

    Raises:
        TraceError: the file cannot be read or is not UTF-8, lacks one of the columns, or has a row of another length.
    """
    # Python's own limit of 131,072 letters is less than the ids of a long prompt take.
    csv.field_size_limit(LONGEST_LINE_BYTES)
    # Without universal line ends: a cell in quotes may hold any.
    reader = csv.reader(io.StringIO(read_text(file), newline=""), strict=True)
    line, names, count = 1, list[str](), 0
    try:
        for cells in reader:
            where, line = f"{place(file)}:{line}", reader.line_num + 1
            if not cells:
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                missing = [column for column in columns if column not in names]
                if missing:
                    raise TraceError(f"{where}: has no column {missing[0]!r} (got {keys.names(names)})")
                continue
            if len(cells) != len(names):
                raise TraceError(f"{where}: must have {len(names)} cells (got {len(cells)})")
            count += 1
            yield where, {column: cells[names.index(column)] for column in columns}
    except csv.Error as error:
        raise TraceError(f"{place(file)}:{line}: not CSV ({error})") from None
    if not count:
        raise TraceError(f"{place(file)}: holds no rows")
