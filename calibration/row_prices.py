"""What a forward costs one row of a server, whose proposals keep every row waiting."""

from __future__ import annotations

from dataclasses import dataclass

from calibration.costs import pipelined
from calibration.server_costs import ServerCosts


@dataclass(frozen=True)
class RowPrices:
    """The prices of one of `rows` rows that are decoded together, so that what it decides pays for all of them.

    A row's step is its share of a batched one. A synchronous forward is charged with everything that the tick takes
    beyond the tokens that the other rows emit in it, each worth one share. So a verify costs its own forward and the
    step of the other rows, less their shares; and one lost overlap is that of the whole batch.

    >>> from calibration import Costs
    >>> alone = Costs("mine", range(1, 4097), {1: 0.005, 2: 0.007}, read_s=0.001)
    >>> prices = RowPrices(ServerCosts(alone))
    >>> prices.step_s(300), prices.sync_s(2, 300), prices.overlap_s(300)
    (0.005, 0.008, 0.001)
    """

    costs: ServerCosts
    rows: int = 1

    def among(self, rows: int) -> RowPrices:
        """Return the prices of one of so many rows."""
        return RowPrices(self.costs, rows)

    def step_s(self, context: int) -> float:
        """Return the seconds of a row's share of a pipelined step.

        Raises:
            ProfileError: no figures for so many rows, or of a row alone for that context.
        """
        device_s = self._device_s(self.rows, context)
        return pipelined(device_s, self._host_s(self.rows), self.costs.costs.run_ahead_s) / self.rows

    def sync_s(self, width: int, context: int) -> float:
        """Return the seconds of a synchronous forward of one row, without its own host work, and of the others' step.

        Raises:
            ProfileError: no figures for that width at that context, or for so many rows or one less.
        """
        one, others = self.costs.costs, self.rows - 1
        if width == 1:
            seconds = self._device_s(self.rows, context) + self._host_s(others)
        else:
            seconds = one.launch_s + self.costs.verify_s(width, context) + one.read_s
            if others:
                seconds += self._device_s(others, context) + self._host_s(others)
        return seconds - others * self.step_s(context) if others else seconds

    def overlap_s(self, context: int) -> float:
        """Return the seconds that a synchronous step of all rows costs more than a pipelined one.

        Raises:
            ProfileError: as `step_s` does.
        """
        return min(self._host_s(self.rows), self.costs.costs.run_ahead_s, self._device_s(self.rows, context))

    def _device_s(self, rows: int, context: int) -> float:
        """Return the device's seconds of a step of so many rows.

        A batch is stepped at the mean context of its rows, and a row knows its own only. So where that is beyond the
        contexts that batches have figures for, the nearest of them is taken.
        """
        return self.costs.step_s(rows, context if self.rows == 1 else self.costs.nearest(rows, context))

    def _host_s(self, rows: int) -> float:
        """Return the host's seconds of a step of so many rows."""
        one = self.costs.costs
        return one.launch_s + one.read_s + rows * one.host_work_s
