"""Double the block when it lands whole, halve it when nothing lands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from policies.governor import Governor, State
from policies.policy import LookupPolicy, Prices
from policies.settings import Range


@dataclass(frozen=True, kw_only=True)
class Doubling(LookupPolicy):
    """Double the block when it lands whole, halve it when nothing lands."""

    first: Annotated[int, Range(1, 64)] = 2
    """Tokens of the first block."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that starts with the first block."""
        return Doubler(self)


class Doubler(Governor):
    """The running half: the size of the next block."""

    def __init__(self, policy: Doubling) -> None:
        self._most = policy.max_draft
        self._block = min(policy.first, self._most)

    def budget(self, state: State) -> int:
        """Return the block; it is never 0, so this governor never pauses."""
        return self._block

    def record(self, accepted: int) -> None:
        """Double after a whole block, halve after a miss."""
        if accepted == self._block:
            self._block = min(2 * self._block, self._most)
        elif accepted == 0:
            self._block = max(1, self._block // 2)

    def rest(self, context: int, asks: int) -> int:
        """Take none: every ask is granted something."""
        return 0
