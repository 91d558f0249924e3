"""What a forward costs, ready for a clock: device time by width and context, and the host's part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibration import checks
from calibration.errors import ProfileError
from calibration.prefill import NO_PREFILL, Prefill, PrefillTable


def pipelined(device_s: float, host_s: float, run_ahead_s: float) -> float:
    """Return the seconds of one step of a long pipelined run.

    Each step the host spends `host_s`, of which it may spend `run_ahead_s`, and never more than one whole forward,
    while the device is still busy; what does not fit there leaves the device idle.

    >>> pipelined(5.0, 2.0, math.inf), pipelined(5.0, 2.0, 0.5), pipelined(1.0, 3.0, math.inf)
    (5.0, 6.5, 3.0)
    """
    return device_s + max(0.0, host_s - min(run_ahead_s, device_s))


@dataclass(frozen=True)
class Costs:
    """The costs of one model on one machine, for every declared context.

    Example: a model whose forwards cost 5 ms and 7 ms at every context.

    >>> costs = Costs("mine", range(1, 4097), {1: 0.005, 2: 0.007}, read_s=0.001)
    >>> costs.device_s(2, 300), costs.step_s(300), costs.sync_s(1, 300)
    (0.007, 0.005, 0.006)
    """

    name: str
    """The profile they come from; errors name it."""
    contexts: range
    """Every declared context, in steps of 1."""
    device: Mapping[int, float | Sequence[float]]
    """Seconds of device time by width: one figure for all contexts, or one for each of `measured_at`."""
    launch_s: float = 0.0
    """Seconds the host takes to build and launch a forward."""
    read_s: float = 0.0
    """Seconds the host takes to read a result once the device is done."""
    run_ahead_s: float = math.inf
    """Seconds of device work that may be outstanding when a submit returns."""
    host_work_s: float = 0.0
    """Further seconds of the host per emitted token."""
    prefill: Prefill | PrefillTable = NO_PREFILL
    """What reading the prompt costs."""
    measured_at: tuple[int, ...] = ()
    """Ascending contexts that the sequences in `device` have figures for; empty: every declared one."""
    notes: tuple[str, ...] = ()
    """What a report that stands on these costs must say."""
    first_use_s: Mapping[int, float] = field(default_factory=dict)
    """Further seconds of a width's first forward in a process; a width that is not in it has none."""
    _rows: dict[int, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.contexts or self.contexts.step != 1 or self.contexts[0] < 0:
            raise ProfileError(f"contexts: must be a range from at least 0 in steps of 1 (got {self.contexts!r})")
        if 1 not in self.device:
            raise ProfileError(f"device: must have width 1 (got {spans(self.device)})")
        points = len(self.measured_at or self.contexts)
        for width, figures in self.device.items():
            if isinstance(figures, float | int):
                checks.not_negative(figures, f"device[{width}]")
                continue
            if len(figures) != points:
                raise ProfileError(f"device[{width}]: must have {points} figures (got {len(figures)})")
            for figure in figures:
                checks.not_negative(figure, f"device[{width}]")
        for where in ("launch_s", "read_s", "host_work_s"):
            checks.not_negative(getattr(self, where), where)
        if not self.run_ahead_s >= 0:
            raise ProfileError(f"run_ahead_s: must be at least 0 (got {self.run_ahead_s!r})")

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths there are figures for, ascending."""
        return tuple(sorted(self.device))

    def device_row(self, width: int) -> list[float]:
        """Return the seconds of device time of one width, indexed by context, for inner loops.

        The list is kept and shared: do not change it. Contexts below the first declared one hold nan; those beyond
        the last are not in it.

        Raises:
            ProfileError: no figures for that width.
        """
        row = self._rows.get(width)
        if row is None:
            row = self._rows[width] = self._spread(width)
        return row

    def device_s(self, width: int, context: int) -> float:
        """Return the seconds of device time of one forward.

        Args:
            width: positions in the forward.
            context: positions in the KV state when it starts.

        Raises:
            ProfileError: no figures for that width, or a context outside the declared ones.
        """
        row = self.device_row(width)
        if not self.contexts[0] <= context <= self.contexts[-1]:
            raise ProfileError(
                f"context {context} is outside the {self.contexts[0]}..{self.contexts[-1]} "
                f"that profile {self.name} stands for"
            )
        return row[context]

    def step_s(self, context: int) -> float:
        """Return the seconds of one pipelined plain step; raises as `device_s` does."""
        host_s = self.launch_s + self.read_s + self.host_work_s
        return pipelined(self.device_s(1, context), host_s, self.run_ahead_s)

    def sync_s(self, width: int, context: int) -> float:
        """Return the seconds of one synchronous forward, without host work; raises as `device_s` does."""
        return self.launch_s + self.device_s(width, context) + self.read_s

    def overlap_s(self, context: int) -> float:
        """Return the seconds that a synchronous plain step, with its host work, costs more than a pipelined one."""
        host_s = self.launch_s + self.read_s + self.host_work_s
        return min(host_s, self.run_ahead_s, self.device_s(1, context))

    def among(self, rows: int) -> Costs:
        """Return these costs: they know of nobody beside the one request; `RowPrices` does."""
        return self

    def prefill_s(self, tokens: int) -> float:
        """Return the seconds to read a prompt.

        Raises:
            ProfileError: longer than a measured table goes.
        """
        return self.prefill.seconds_for(tokens)

    def _spread(self, width: int) -> list[float]:
        if width not in self.device:
            between = 1 < width < self.widths[-1]
            hint = "; --interpolate-widths fills in between" if between else ""
            raise ProfileError(f"width {width} is not in profile {self.name} (widths: {spans(self.widths)}){hint}")
        figures = self.device[width]
        start = [math.nan] * self.contexts[0]
        if isinstance(figures, float | int):
            return start + [float(figures)] * len(self.contexts)
        # beyond the measured ends np.interp keeps the end's figure, which is what declaring those contexts means
        at = self.measured_at or self.contexts
        row: list[float] = np.interp(np.asarray(self.contexts), np.asarray(at), np.asarray(figures)).tolist()
        return start + row


def spans(values: Sequence[int] | Mapping[int, object]) -> str:
    """Write integers shortly, runs of three or more as first..last.

    >>> spans([1, 2, 3, 4, 8, 16, 17])
    '1..4, 8, 16, 17'
    """
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    short = (f"{run[0]}..{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return ", ".join(short)
