"""What the actions of a scheduler take on the two clocks of host and device.

The recurrence is that of one request (`simulator.two_clocks`): the device runs forwards in order, a submit returns when
no more than the run-ahead is outstanding, and a read waits for the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from calibration import ServerCosts
from simulator.serving.actions import Action, Outcome, Prefill, Read, Step, Submit, Unwind, Verify, Warm
from simulator.serving.row import TOKEN, Row
from simulator.simpy_clocks import Device


class Host:
    """Executes actions one after another, and knows what each takes."""

    def __init__(self, costs: ServerCosts) -> None:
        self.read_at_s = 0.0
        """When the last step or prefill was read."""
        self.verified_at_s: dict[str, float] = {}
        """When each verify since somebody cleared this was read."""
        self.warm_up_s = 0.0
        """Seconds spent on the first verify of every width."""
        self.wasted = 0
        """Forwards whose results were thrown away."""
        self._costs = costs
        self._device = Device()
        self._in_flight: deque[float] = deque()
        """When each forward that has not been read will be done."""
        self._rows: Sequence[Row] = ()
        self._prompts = 0
        """Prompt tokens of those rows."""

    def execute(self, action: Action, outcome: Outcome, now_s: float) -> float:
        """Return the seconds that an action takes of the host.

        Args:
            action: what to do.
            outcome: what it brings.
            now_s: when it begins.

        Raises:
            ProfileError: a forward that the profile has no cost of.
        """
        end_s = now_s
        match action:
            case Submit(rows):
                end_s = self._submit(now_s, self._step_s(rows))
            case Read(rows):
                end_s = self.read_at_s = self._read(now_s, _emitted(rows, outcome))
            case Step(rows):
                end_s = self._read(self._submit(now_s, self._step_s(rows)), _emitted(rows, outcome))
                self.read_at_s = end_s
            case Verify(row, proposed):
                end_s = self._verify(now_s, row, proposed + 1, outcome.get(row, TOKEN).emitted)
                self.verified_at_s[row.id] = end_s
            case Unwind(_, positions):
                self.wasted += positions
                end_s = max(now_s, *self._in_flight) if self._in_flight else now_s
                self._in_flight.clear()
            case Prefill(rows, tokens):
                end_s = self.read_at_s = now_s + self._prefill_s(rows, tokens)
            case Warm(row, max_draft):
                for width in range(2, max_draft + 2):
                    end_s = self._verify(end_s, row, width, 0)
                self.warm_up_s += end_s - now_s
        return end_s - now_s

    def _submit(self, now_s: float, seconds: float) -> float:
        costs = self._costs.costs
        launched_s = now_s + costs.launch_s
        done_s = self._device.submit(launched_s, seconds)
        self._in_flight.append(done_s)
        return max(launched_s, done_s - costs.run_ahead_s)

    def _read(self, now_s: float, emitted: int) -> float:
        costs = self._costs.costs
        return max(now_s, self._in_flight.popleft()) + costs.read_s + emitted * costs.host_work_s

    def _verify(self, now_s: float, row: Row, width: int, emitted: int) -> float:
        return self._read(self._submit(now_s, self._costs.verify_s(width, row.context - 1)), emitted)

    def _step_s(self, rows: Sequence[Row]) -> float:
        """Return what a step of these rows takes; the last token of each enters its KV state with it."""
        if rows is not self._rows:
            self._rows = rows
            self._prompts = sum(row.job.prompt_tokens for row in rows)
        contexts = self._prompts + sum([row.generated for row in rows])
        return self._costs.step_s(len(rows), contexts // len(rows) - 1 + len(self._in_flight))

    def _prefill_s(self, rows: Sequence[Row], tokens: int) -> float:
        """Return what a chunk takes: its part of the whole prompt, or that of all prompts padded to the longest."""
        before = rows[0].prefilled
        after = min(before + tokens, rows[0].job.prompt_tokens) if len(rows) == 1 else tokens * len(rows)
        return self._costs.prefill_s(after) - self._costs.prefill_s(before)


def _emitted(rows: Sequence[Row], outcome: Outcome) -> int:
    return sum(outcome.get(row, TOKEN).emitted for row in rows) if outcome else len(rows)
