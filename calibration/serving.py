"""What a server's forwards cost beyond those of one request: batched steps, and verifies and prompts by storage.

Published figures are few and from different benchmarks, so every entry says where it comes from, and one that nobody
measured says what it assumes instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration import checks
from calibration.cost_table import LONGEST_CONTEXT, WIDEST
from calibration.errors import ProfileError
from calibration.prefill import Prefill, PrefillTable

MOST_ROWS = 1024
"""A batch of more rows than this is a slip."""


@dataclass(frozen=True)
class ServedForward:
    """Seconds of one kind of forward by context."""

    size: int
    """Rows of a step, or positions of a verify."""
    contexts: tuple[int, ...]
    """Contexts measured at, ascending."""
    used_for: tuple[int, int]
    """First and last context that the figures stand for; outside the measured ones the nearest is used unchanged."""
    seconds: tuple[float, ...]
    """A pipelined step, or a synchronous verify; one per context."""
    source: str | None = None
    """Where the figures come from, and how they were derived."""
    assumed: str | None = None
    """What they assume, in place of a source."""

    def check(self, where: str, size: str, seconds: str) -> None:
        """Refuse what cannot be.

        Args:
            where: the dotted name of the entry.
            size: what the file calls its size.
            seconds: what the file calls its seconds.

        Raises:
            ProfileError: a value out of bounds.
        """
        most = MOST_ROWS if size == "rows" else WIDEST
        if not 1 <= self.size <= most:
            raise ProfileError(f"{where}.{size}: must be between 1 and {most} (got {self.size})")
        checks.ascending(self.contexts, f"{where}.contexts")
        first, last = self.used_for
        if not 0 <= first <= self.contexts[0] <= self.contexts[-1] <= last <= LONGEST_CONTEXT:
            raise ProfileError(
                f"{where}.used_for: must include every measured context and be within 0..{LONGEST_CONTEXT} "
                f"(got {first}..{last})"
            )
        if len(self.seconds) != len(self.contexts):
            raise ProfileError(
                f"{where}.{seconds}: must have one entry per context (got {len(self.seconds)} for {len(self.contexts)})"
            )
        for place, figure in enumerate(self.seconds):
            checks.positive(figure, f"{where}.{seconds}[{place}]")
        if (self.source is None) == (self.assumed is None):
            raise ProfileError(f"{where}: must have either a source or what is assumed")
        checks.legible(self.source or self.assumed or "", f"{where}.{'source' if self.source else 'assumed'}")

    def document(self, size: str, seconds: str) -> dict[str, Any]:
        """Return the entry as `yaml_text.dump` takes it, in the order of the file."""
        found: dict[str, Any] = {size: self.size, "contexts": list(self.contexts), "used_for": list(self.used_for)}
        found[seconds] = list(self.seconds)
        return found | ({"source": self.source} if self.source else {"assumed": self.assumed})


@dataclass(frozen=True)
class AssumedVerify:
    """Verifies that were not measured on this storage.

    The device is taken to need what the profile's cost table says for the width, and what a plain step of one row
    costs more here than there: the difference is reading the KV state, which a verify reads once as well.
    """

    factor: float
    """By which the whole is multiplied, to see how much the assumption matters."""
    assumed: str
    """Why, in a line that every report repeats."""

    def check(self, where: str) -> None:
        """Refuse what cannot be.

        Raises:
            ProfileError: a value out of bounds.
        """
        if not 0.1 <= self.factor <= 10:
            raise ProfileError(f"{where}.factor: must be between 0.1 and 10 (got {self.factor!r})")
        checks.legible(self.assumed, f"{where}.assumed")


@dataclass(frozen=True)
class StorageTable:
    """What forwards cost on one kind of KV storage, as far as it is known."""

    steps: tuple[ServedForward, ...] = ()
    """Pipelined plain steps by the number of rows."""
    verify: tuple[ServedForward, ...] | AssumedVerify = ()
    """Synchronous verifies of one row by width."""
    prefill: Prefill | PrefillTable | None = None
    """What reading a prompt costs; None leaves it to the profile's own."""

    def check(self, where: str) -> None:
        """Refuse what cannot be.

        Raises:
            ProfileError: a value out of bounds, or a size twice.
        """
        _check_all(self.steps, f"{where}.steps", "rows", "step_s")
        if isinstance(self.verify, AssumedVerify):
            self.verify.check(f"{where}.verify")
        else:
            _check_all(self.verify, f"{where}.verify", "width", "sync_s")
        if self.prefill is not None:
            checks.legible(self.prefill.source, f"{where}.prefill.source")


NOTHING_KNOWN = StorageTable()
"""No figures at all."""


@dataclass(frozen=True)
class Serving:
    """The tables of the two kinds of storage."""

    dense: StorageTable | None = None
    paged: StorageTable | None = None

    def __post_init__(self) -> None:
        for where, table in (("dense", self.dense), ("paged", self.paged)):
            if table is not None:
                table.check(f"serving.{where}")


NO_SERVING = Serving()
"""What most profiles say of servers."""


def _check_all(entries: Sequence[ServedForward], where: str, size: str, seconds: str) -> None:
    if entries:
        checks.ascending([entry.size for entry in entries], f"{where}: {size}")
    for place, entry in enumerate(entries):
        entry.check(f"{where}[{place}]", size, seconds)
