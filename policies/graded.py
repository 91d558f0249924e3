"""Grade the block by how many tokens landed lately, and pause for a while after misses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from policies.governor import Governor, State
from policies.policy import LookupPolicy, Prices
from policies.settings import Range


@dataclass(frozen=True, kw_only=True)
class Graded(LookupPolicy):
    """Grade the block by how many tokens landed lately, and pause for a while after misses.

    The rules and defaults are the reference engine's default away from CUDA; its authors chose the multiplier, the
    miss streak and the pipelining threshold on a 36-point grid on an M4 Pro.
    """

    multiplier: Annotated[float, Range(0.0, 64.0)] = 2.0
    """Tokens granted per token that landed in the average round (reference: 2)."""
    offset: Annotated[int, Range(0, 64)] = 2
    """Tokens granted beyond that, so that a run of misses never closes the block (reference: 2)."""
    ema_weight: Annotated[float, Range(0.01, 1.0)] = 0.5
    """Weight of the newest round in the average of landed tokens (reference: 1/2)."""
    misses: Annotated[int, Range(1, 1024)] = 3
    """Rounds in a row without a landed token that start a pause (reference: 3)."""
    first_pause: Annotated[int, Range(0, 1024)] = 4
    """Asks that the first pause after a success lasts (reference: 4)."""
    longest_pause: Annotated[int, Range(0, 65536)] = 32
    """Asks that a pause lasts at most; each pause in a row is twice the one before (reference: 32)."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor whose average starts at a full block."""
        return Grader(self)


class Grader(Governor):
    """The running half: an average, a count of misses and a cooldown counted in asks."""

    def __init__(self, policy: Graded) -> None:
        self._policy = policy
        self._ema = float(policy.max_draft)
        self._block = self._graded()
        self._misses = 0
        self._cooldown = 0
        self._next_pause = policy.first_pause

    def budget(self, state: State) -> int:
        """Return 0 during a pause, which it shortens by this ask, else the graded block."""
        if self._cooldown > 0:
            self._cooldown -= 1
            return 0
        return self._block

    def record(self, accepted: int) -> None:
        """Average the round in; after enough misses in a row, pause."""
        policy = self._policy
        self._ema = (1 - policy.ema_weight) * self._ema + policy.ema_weight * accepted
        self._block = self._graded()
        if accepted > 0:
            self._misses = 0
            self._next_pause = policy.first_pause
            return
        self._misses += 1
        if self._misses >= policy.misses:
            self._misses = 0
            self._cooldown = min(self._next_pause, policy.longest_pause)
            self._next_pause = min(policy.longest_pause, 2 * self._next_pause)

    def rest(self, context: int, asks: int) -> int:
        """Take what is left of the pause."""
        taken = min(asks, self._cooldown)
        self._cooldown -= taken
        return taken

    def _graded(self) -> int:
        # Halves round away from zero, as the reference does; the average is never negative. Adding one half first would
        # round up what lies a last bit below a half.
        tokens = self._policy.multiplier * self._ema
        whole = math.floor(tokens)
        block = whole + (tokens - whole >= 0.5) + self._policy.offset
        return max(1, min(block, self._policy.max_draft))
