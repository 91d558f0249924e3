"""Always allow a full block: the reference engine with its governor switched off."""

from __future__ import annotations

from dataclasses import dataclass

from policies.governor import Governor, State
from policies.policy import LookupPolicy, Prices


@dataclass(frozen=True, kw_only=True)
class Fixed(LookupPolicy):
    """Always allow a full block: the reference engine with its governor switched off."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that always grants `max_draft`."""
        return Always(self.max_draft)


class Always(Governor):
    """Grants the same number of tokens, ever."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def budget(self, state: State) -> int:
        """Return the one number it grants."""
        return self._tokens

    def rest(self, context: int, asks: int) -> int:
        """Take none: every ask is granted something."""
        return 0
