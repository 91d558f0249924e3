"""Never propose: plain decoding, pipelined from its first step."""

from __future__ import annotations

from dataclasses import dataclass

from policies.governor import Governor, State
from policies.policy import Policy, Prices


@dataclass(frozen=True, kw_only=True)
class Plain(Policy):
    """Never propose: plain decoding, pipelined from its first step."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that is always paused and never probes."""
        return Never()


class Never(Governor):
    """Grants nothing, ever."""

    paused = True

    def budget(self, state: State) -> int:
        """Return 0."""
        return 0

    def rest(self, context: int, asks: int) -> int:
        """Take all asks: every one is granted 0."""
        return asks
