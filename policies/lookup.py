"""Prompt lookup: what a drafter asks about a context, whoever answers.

The rule (the reference engine's, section numbers of no other document needed): for a suffix length n from `ngram_max`
down to `ngram_min`, look for an earlier occurrence of the last n tokens that at least one token follows; it may
overlap the suffix. The first n with an occurrence wins. What followed it, up to the end of the context, is proposed.

Two answer: `NgramIndex` knows the tokens so far and serves live decoding; `RecordedLookup` knows the whole reply and
serves replay. A context is named by its length in tokens.
"""

from __future__ import annotations

from typing import Protocol

SHADOW_TOKENS = 2
"""Tokens that a shadow probe claims; all must come true (the reference's `SHADOW_CONFIRM`)."""


class Lookup(Protocol):
    """Answers for every context in turn, each at least as long as the one before."""

    def find(self, context: int) -> int:
        """Return how many tokens the lookup proposes, at most `max_draft`."""

    def match_length(self, context: int) -> int:
        """Return the length of the suffix found earlier, 0 without one."""

    def claims(self, context: int) -> bool:
        """Return whether a shadow lookup claims `SHADOW_TOKENS` tokens here; live, the claim is remembered."""

    def settle(self, start: int, context: int) -> bool | None:
        """Return whether the claim made at `start` came true, None while that is open at `context`."""

    def quiet(self, context: int, asks: int) -> int | None:
        """Return in how many of the next `asks` contexts nothing is found up to the first find; None when unknown."""

    def unclaimed(self, context: int, asks: int) -> int:
        """Return the same for claims; asked only where `quiet` is known."""

    def known(self, context: int) -> int:
        """Return how many contexts from this one on end before the recorded reply does; 0 live."""


class NoLookup:
    """Finds nothing, ever: the lookup of a policy that never proposes."""

    def __init__(self, end: int) -> None:
        """Know that the recorded reply ends at `end` tokens of context."""
        self._end = end

    def find(self, context: int) -> int:
        """Return 0."""
        return 0

    def true_tokens(self, context: int) -> int:
        """Return 0."""
        return 0

    def match_length(self, context: int) -> int:
        """Return 0."""
        return 0

    def claims(self, context: int) -> bool:
        """Return False."""
        return False

    def settle(self, start: int, context: int) -> bool | None:
        """Return None: no claim is ever open."""
        return None

    def quiet(self, context: int, asks: int) -> int:
        """Return all of them."""
        return asks

    def unclaimed(self, context: int, asks: int) -> int:
        """Return all of them."""
        return asks

    def known(self, context: int) -> int:
        """Return how many contexts from this one on end before the reply does."""
        return self._end - context
