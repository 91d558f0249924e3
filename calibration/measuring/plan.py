"""What is measured: widths, contexts and rounds, and the cells that come of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from calibration import checks
from calibration.cost_table import LONGEST_CONTEXT, WIDEST
from calibration.errors import ProfileError

WIDTHS = tuple(range(1, 11))
CONTEXTS = (16, 256, 1024, 2304)
ROUNDS = 12

STRETCH = 4
"""Positions that a probe of what the time model derives goes on for; a pipelined sample goes on for fewer."""
SHORTEST = 8
"""The shortest context: there must be some positions to take back before it."""


class Cell(NamedTuple):
    """One thing to measure; most are measured once a round."""

    kind: str
    """`sync`, `pipelined`, `build`, `submit`, `wait`, `read`, `first_use`, `prefill`, or one of `probes.DERIVED`."""
    width: int
    """Positions of the forward; 0 for a prefill."""
    context: int
    """Positions in the KV state when it starts; the length of a prefill."""

    def __str__(self) -> str:
        if self.kind == "prefill":
            return f"a prefill of {self.context}"
        if self.kind == "pipelined":
            return f"the pipelined step at context {self.context}"
        return f"{self.kind} width {self.width} at context {self.context}"


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Raises:
        ProfileError: a value that cannot be measured.
    """

    widths: tuple[int, ...] = WIDTHS
    """Ascending from 1."""
    contexts: tuple[int, ...] = CONTEXTS
    """Ascending positions in the KV state, and the lengths of the prefills that are timed."""
    rounds: int = ROUNDS
    """Samples a cell."""
    host_work_s: float = 0.0
    """Seconds that the host is busy for every emitted token."""
    seed: int = 0
    """Of the order of the cells within a round."""

    def __post_init__(self) -> None:
        checks.ascending(self.widths, "--widths")
        checks.ascending(self.contexts, "--contexts")
        if self.widths[0] != 1 or self.widths[-1] > WIDEST:
            raise ProfileError(f"--widths: must start at 1 and end at {WIDEST} at most (got {self.widths})")
        if self.contexts[0] < SHORTEST or self.contexts[-1] > LONGEST_CONTEXT:
            got = f"{self.contexts[0]}..{self.contexts[-1]}"
            raise ProfileError(f"--contexts: must be within {SHORTEST}..{LONGEST_CONTEXT} (got {got})")
        checks.not_negative(self.host_work_s, "--host-work")

    @property
    def positions(self) -> int:
        """The most positions that the KV state will hold."""
        return self.contexts[-1] + max(self.widths[-1], STRETCH)

    def timed(self, context: int) -> Iterator[Cell]:
        """Yield the cells that are timed by themselves at one context."""
        yield Cell("pipelined", 1, context)
        if context == self.contexts[0]:
            yield Cell("submit", 1, context)  # what the host does hardly depends on the context
        for width in self.widths:
            yield Cell("sync", width, context)

    @property
    def steps(self) -> int:
        """How many measurements there are: first uses, further prefills, and the rounds."""
        before = len(self.widths) + len(self.contexts) - 1
        return before + self.rounds * sum(1 for context in self.contexts for _ in self.timed(context))
