"""The measured table of a profile: the pipelined step, and the synchronous forward at each width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibration import checks
from calibration.errors import ProfileError

WIDEST = 65
"""The current token and the longest draft of any lookup, 64 tokens."""
LONGEST_CONTEXT = 1_048_576
"""Beyond this a declared context is a slip; inner loops keep a row of every declared one."""


@dataclass(frozen=True)
class CostTable:
    """Seconds by context, and by width and context, as measured."""

    contexts: tuple[int, ...]
    """Contexts measured at, ascending."""
    used_for: tuple[int, int]
    """First and last context that the table stands for."""
    widths: tuple[int, ...]
    """Widths measured, ascending from 1."""
    pipelined_s: tuple[float, ...]
    """Seconds of a pipelined step, one per context."""
    sync_s: tuple[tuple[float, ...], ...]
    """Seconds of a synchronous forward, one row per width, one column per context."""
    pipelined_spread_s: tuple[float, ...] | None = None
    """Interquartile range of each pipelined step."""
    sync_spread_s: tuple[tuple[float, ...], ...] | None = None
    """Interquartile range of each synchronous forward."""
    pipelined_runs: int | None = None
    """Measurements behind each pipelined step."""
    sync_runs: int | None = None
    """Measurements behind each synchronous forward."""
    first_use_s: tuple[float, ...] | None = None
    """Further seconds of the first forward of each width in a process, one per width."""

    def __post_init__(self) -> None:
        self._check_contexts()
        self._check_widths()
        for name in ("pipelined_s", "pipelined_spread_s"):
            if getattr(self, name) is not None:
                self._check_row(getattr(self, name), f"cost.{name}")
        for name in ("sync_s", "sync_spread_s"):
            if getattr(self, name) is not None:
                self._check_rows(getattr(self, name), f"cost.{name}")
        if self.first_use_s is not None:
            if len(self.first_use_s) != len(self.widths):
                raise ProfileError(
                    f"cost.first_use_s: must have one entry per width (got {len(self.first_use_s)} for "
                    f"{len(self.widths)})"
                )
            for place, seconds in enumerate(self.first_use_s):
                checks.not_negative(seconds, f"cost.first_use_s[{place}]")
        for name in ("pipelined_runs", "sync_runs"):
            runs = getattr(self, name)
            if runs is not None and runs < 1:
                raise ProfileError(f"cost.{name}: must be at least 1 (got {runs})")

    def settled(self) -> tuple[CostTable, tuple[str, ...]]:
        """Return the table with every noise-born contradiction taken out, and a note for each.

        A synchronous step cannot be faster than a pipelined one. Where it was measured so by less than twice the
        larger of the two spreads, it is stored as equal to it.
        """
        row, notes = list(self.sync_s[0]), []
        for place, (pipelined_s, sync_s) in enumerate(zip(self.pipelined_s, row, strict=True)):
            if 0 < pipelined_s - sync_s < 2 * self.spread_s(place):
                row[place] = pipelined_s
                notes.append(
                    f"the synchronous step at context {self.contexts[place]} was measured at {sync_s:g} s, below the "
                    f"pipelined {pipelined_s:g} s by less than twice their spread; it is stored as the pipelined one"
                )
        return replace(self, sync_s=(tuple(row), *self.sync_s[1:])) if notes else self, tuple(notes)

    def spread_s(self, place: int) -> float:
        """Return the larger spread of the two plain steps at one measured context; 0 where none is known."""
        pipelined_s = self.pipelined_spread_s[place] if self.pipelined_spread_s else 0.0
        sync_s = self.sync_spread_s[0][place] if self.sync_spread_s else 0.0
        return max(pipelined_s, sync_s)

    def document(self) -> dict[str, Any]:
        """Return the table as `yaml_text.dump` takes it, in the order of the fields, without what is not known."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: _listed(value) for name, value in named.items() if value is not None}

    def _check_contexts(self) -> None:
        checks.ascending(self.contexts, "cost.contexts")
        if self.contexts[0] < 0:
            raise ProfileError(f"cost.contexts: must be at least 0 (got {self.contexts[0]})")
        where, (first, last) = "cost.used_for", self.used_for
        if not 0 <= first <= last <= LONGEST_CONTEXT:
            raise ProfileError(f"{where}: must be first..last within 0..{LONGEST_CONTEXT} (got {first}..{last})")
        if first > self.contexts[0]:
            raise ProfileError(f"{where}: begins at {first}, after the first measured context ({self.contexts[0]})")
        if last < self.contexts[-1]:
            raise ProfileError(f"{where}: ends at {last}, before the last measured context ({self.contexts[-1]})")
        if last > self.contexts[-1] and len(self.contexts) > 1:
            raise ProfileError(
                f"{where}: ends at {last}, beyond the last measured context ({self.contexts[-1]}); costs are never "
                "extrapolated"
            )

    def _check_widths(self) -> None:
        checks.ascending(self.widths, "cost.widths")
        if self.widths[0] != 1:
            raise ProfileError(f"cost.widths: must start at 1 (got {self.widths[0]})")
        if self.widths[-1] > WIDEST:
            raise ProfileError(f"cost.widths: must be at most {WIDEST} (got {self.widths[-1]})")

    def _check_rows(self, rows: Sequence[Sequence[float]], where: str) -> None:
        if len(rows) != len(self.widths):
            raise ProfileError(f"{where}: must have one row per width (got {len(rows)} for {len(self.widths)})")
        for place, row in enumerate(rows):
            self._check_row(row, f"{where}[{place}]")

    def _check_row(self, row: Sequence[float], where: str) -> None:
        if len(row) != len(self.contexts):
            raise ProfileError(f"{where}: must have one entry per context (got {len(row)} for {len(self.contexts)})")
        for place, seconds in enumerate(row):
            check = checks.not_negative if "spread" in where else checks.positive
            check(seconds, f"{where}[{place}]")


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
