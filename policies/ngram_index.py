"""The n-gram index: prompt lookup while the context grows, for live decoding."""

from __future__ import annotations

from collections.abc import Sequence

from policies.lookup import SHADOW_TOKENS


class NgramIndex:
    """Answers a drafter out of the tokens so far.

    For every n-gram length it maps an n-gram to where its latest (or earliest) occurrence with a follower ends. The
    index is brought up to date at the next lookup, so that a prompt costs nothing until it is needed.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        *,
        ngram_max: int = 3,
        ngram_min: int = 2,
        max_draft: int = 7,
        match: str = "latest",
    ) -> None:
        """Index `tokens`, which the caller goes on appending to."""
        self._text = tokens
        self._lengths = range(ngram_max, ngram_min - 1, -1)
        self._max_draft = max_draft
        self._latest = match == "latest"
        self._ends: dict[int, dict[tuple[int, ...], int]] = {n: {} for n in self._lengths}
        self._indexed = 0
        self._claim: list[int] = []

    def proposal(self, context: int, most: int) -> list[int]:
        """Return the tokens proposed after the first `context` tokens, at most `most`."""
        _, start = self._look_up(context)
        return list(self._text[start : min(start + most, context)])

    def find(self, context: int) -> int:
        """Return how many tokens the lookup proposes, at most `max_draft`."""
        return min(context - self._look_up(context)[1], self._max_draft)

    def match_length(self, context: int) -> int:
        """Return the length of the suffix found earlier, 0 without one."""
        return self._look_up(context)[0]

    def claims(self, context: int) -> bool:
        """Return whether a shadow lookup claims `SHADOW_TOKENS` tokens here, and remember them."""
        self._claim = self.proposal(context, SHADOW_TOKENS)
        return len(self._claim) == SHADOW_TOKENS

    def settle(self, start: int, context: int) -> bool | None:
        """Return whether the claim made at `start` came true, None while that is open at `context`."""
        emitted = self._text[start : min(start + SHADOW_TOKENS, context)]
        if any(claimed != token for claimed, token in zip(self._claim, emitted, strict=False)):
            return False
        return True if len(emitted) == SHADOW_TOKENS else None

    def quiet(self, context: int, asks: int) -> None:
        """Return None: nobody knows what is found in a context that is still to come."""
        return

    def unclaimed(self, context: int, asks: int) -> int:
        """Return 0: every context has to be asked about."""
        return 0

    def known(self, context: int) -> int:
        """Return 0: no context to come is known."""
        return 0

    def _look_up(self, context: int) -> tuple[int, int]:
        """Return the length of the suffix found and where its continuation starts; (0, context) without one."""
        self._extend(context)
        text = self._text
        for n in self._lengths:
            if n < context:
                end = self._ends[n].get(tuple(text[context - n : context]))
                if end is not None:
                    return n, end + 1
        return 0, context

    def _extend(self, context: int) -> None:
        """Index every n-gram that a token of the context follows."""
        text = self._text
        for n in self._lengths:
            ends = self._ends[n]
            for end in range(max(self._indexed, n - 1), context - 1):
                ngram = tuple(text[end - n + 1 : end + 1])
                if self._latest:
                    ends[ngram] = end
                else:
                    ends.setdefault(ngram, end)
        self._indexed = max(self._indexed, context - 1)
