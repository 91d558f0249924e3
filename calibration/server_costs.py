"""What a server's forwards cost, ready for a clock: batched steps and verifies by context, on one kind of storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from calibration.costs import Costs, spans
from calibration.errors import ProfileError
from calibration.serving import NOTHING_KNOWN, AssumedVerify, ServedForward, StorageTable

StorageKind = Literal["dense", "paged"]


@dataclass(frozen=True)
class ServerCosts:
    """The costs of a server whose rows keep their KV state on one kind of storage.

    Where the storage's own table has nothing, a row alone on dense storage costs what one request costs. Nothing else
    stands in for what is missing.
    """

    costs: Costs
    """Those of one request; the host's part is theirs."""
    storage: StorageKind = "dense"
    table: StorageTable = NOTHING_KNOWN
    _steps: dict[int, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _verifies: dict[int, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def step_s(self, rows: int, context: int) -> float:
        """Return the seconds of device time of a plain step.

        Args:
            rows: rows stepped together.
            context: positions in their KV states when it starts, on average.

        Raises:
            ProfileError: no figures for so many rows, or for that context.
        """
        row = self._steps.get(rows) or self._kept_step_row(rows)
        if context < len(row) and row[context] >= 0:
            return row[context]
        raise self._outside(row, context, f"a step of {_rows(rows)}")

    def nearest(self, rows: int, context: int) -> int:
        """Return the context nearest to this one for which there are figures of a step of so many rows.

        Raises:
            ProfileError: no figures for so many rows.
        """
        row = self._steps.get(rows) or self._kept_step_row(rows)
        return min(max(context, _first(row)), len(row) - 1)

    def verify_s(self, width: int, context: int) -> float:
        """Return the seconds of device time of one row's verify.

        Args:
            width: positions in the forward.
            context: positions in the KV state when it starts.

        Raises:
            ProfileError: no figures for that width, or for that context.
        """
        row = self._verifies.get(width)
        if row is None:
            row = self._verifies[width] = self._verify_row(width)
        if context < len(row) and row[context] >= 0:
            return row[context]
        raise self._outside(row, context, f"a verify of width {width}")

    def prefill_s(self, tokens: int) -> float:
        """Return the seconds to read a prompt; raises as `Costs.prefill_s` does."""
        own = self.table.prefill
        return self.costs.prefill_s(tokens) if own is None else own.seconds_for(tokens)

    def notes(self, rows: int) -> list[str]:
        """Return what a report must say that stands on steps of up to so many rows and on verifies."""
        own = self.table.prefill
        found = [note for note in self.costs.notes if own is None or note != f"prefill: {self.costs.prefill.source}"]
        found += [
            f"assumed, a step of {_rows(step.size)} on {self.storage} storage: {step.assumed}"
            for step in self.table.steps
            if step.assumed and step.size <= rows
        ]
        verify = self.table.verify
        if isinstance(verify, AssumedVerify):
            times = "" if verify.factor == 1 else f", times {verify.factor:g}"
            found.append(f"assumed, verifies on {self.storage} storage: {verify.assumed}{times}")
        else:
            found += [
                f"assumed, a verify of width {one.size} on {self.storage} storage: {one.assumed}"
                for one in verify
                if one.assumed
            ]
        if own is not None:
            found.append(f"prefill on {self.storage} storage: {own.source}")
        return found

    def _kept_step_row(self, rows: int) -> list[float]:
        row = self._steps[rows] = self._step_row(rows)
        return row

    def _step_row(self, rows: int) -> list[float]:
        costs = self.costs
        for step in self.table.steps:
            if step.size == rows:
                idle_s = max(0.0, costs.launch_s + costs.read_s - costs.run_ahead_s)
                return _spread(step, idle_s)
        if rows == 1 and self.storage == "dense":
            return costs.device_row(1)
        have = ", ".join(str(step.size) for step in self.table.steps) or "none"
        raise ProfileError(
            f"profile {costs.name} has no cost of a step of {_rows(rows)} on {self.storage} storage (rows: {have})"
        )

    def _verify_row(self, width: int) -> list[float]:
        costs, verify = self.costs, self.table.verify
        if isinstance(verify, AssumedVerify):
            plain, alone, forward = self._step_row(1), costs.device_row(1), costs.device_row(width)
            first, last = costs.contexts[0], costs.contexts[-1]
            near = [min(max(context, first), last) for context in range(len(plain))]
            return [verify.factor * (forward[at] + here - alone[at]) for at, here in zip(near, plain, strict=True)]
        for one in verify:
            if one.size == width:
                return _spread(one, costs.launch_s + costs.read_s)
        if not verify and self.storage == "dense":
            return costs.device_row(width)
        have = spans([one.size for one in verify]) or "none"
        raise ProfileError(
            f"profile {costs.name} has no cost of a verify of width {width} on {self.storage} storage (widths: {have})"
        )

    def _outside(self, row: Sequence[float], context: int, what: str) -> ProfileError:
        return ProfileError(
            f"context {context} is outside the {_first(row)}..{len(row) - 1} for which profile {self.costs.name} has "
            f"the cost of {what} on {self.storage} storage"
        )


def _spread(forward: ServedForward, less_s: float) -> list[float]:
    """Return device seconds by context, nan below the first: those of the figures less what is not the device's."""
    first, last = forward.used_for
    row: list[float] = np.interp(np.arange(first, last + 1), forward.contexts, forward.seconds).tolist()
    return [math.nan] * first + [seconds - less_s for seconds in row]


def _first(row: Sequence[float]) -> int:
    """Return the first context that has a figure."""
    return next(place for place, figure in enumerate(row) if figure >= 0)


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count > 1)}"
