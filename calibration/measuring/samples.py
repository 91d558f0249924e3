"""Raw samples by cell: their medians and spreads, their drift, and the file that keeps them beside a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from calibration.errors import ProfileError
from calibration.measuring.plan import Cell
from traces.files import write_whole

FORMAT = "breakeven-samples/1"
DIGITS = 8
"""Decimal places of a time in seconds."""


@dataclass
class Samples:
    """Seconds by cell, in the order in which they were measured."""

    cells: dict[Cell, list[float]] = field(default_factory=dict)

    def add(self, cell: Cell, seconds: float) -> None:
        """Keep one more."""
        self.cells.setdefault(cell, []).append(round(seconds, DIGITS))

    def median_s(self, cell: Cell) -> float:
        """Return the median of a cell."""
        return round(float(np.median(self.cells[cell])), DIGITS)

    def spread_s(self, cell: Cell) -> float:
        """Return the interquartile range of a cell."""
        low, high = np.percentile(self.cells[cell], (25, 75))
        return round(float(high - low), DIGITS)

    def of(self, kind: str) -> list[Cell]:
        """Return the cells of one kind, by width and context."""
        return sorted(cell for cell in self.cells if cell.kind == kind)

    def drift(self, cell: Cell) -> float:
        """Return by what share the last third of a cell's samples is above the first; 0 with fewer than 6."""
        seconds = self.cells[cell]
        third = len(seconds) // 3
        if third < 2:
            return 0.0
        return float(np.median(seconds[-third:]) / np.median(seconds[:third]) - 1)

    def drawn_again(self, random: np.random.Generator) -> Samples:
        """Return as many samples of every cell, drawn with replacement; of cells of a round, the same rounds."""
        rows = {count: random.integers(0, count, count) for count in sorted({*map(len, self.cells.values())})}
        return Samples({cell: [seconds[row] for row in rows[len(seconds)]] for cell, seconds in self.cells.items()})

    def write(self, path: Path) -> None:
        """Write them as JSON, a cell a line.

        Raises:
            ProfileError: the folder does not take it.
        """
        cells = [{**cell._asdict(), "seconds": seconds} for cell, seconds in sorted(self.cells.items())]
        rows = ",\n".join(map(json.dumps, cells))
        try:
            write_whole(path, f'{{"format": "{FORMAT}", "cells": [\n{rows}\n]}}\n')
        except OSError as error:
            raise ProfileError(f"{path}: cannot be written ({error.strerror})") from None


def read(path: Path) -> Samples:
    """Read a file of samples.

    Raises:
        ProfileError: it cannot be read or is none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise ProfileError(f"{path}: format must be {FORMAT!r}")
        cells = {
            Cell(str(cell["kind"]), int(cell["width"]), int(cell["context"])): [float(one) for one in cell["seconds"]]
            for cell in document["cells"]
        }
        for cell, seconds in cells.items():
            if not seconds or not np.all(np.isfinite(seconds)):
                raise ProfileError(f"{path}: is no file of samples ({cell} has {seconds})")
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError(f"{path}: is no file of samples ({error!r})") from None
    return Samples(cells)
