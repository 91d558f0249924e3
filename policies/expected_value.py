"""Propose exactly as many tokens as pay, by what every width costs here and how likely the next token comes true."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Annotated, ClassVar, NamedTuple

from policies.governor import Governor, Match, State
from policies.policy import LookupPolicy, Prices
from policies.profit import most_profitable
from policies.settings import Range


@dataclass(frozen=True, kw_only=True)
class ExpectedValue(LookupPolicy):
    """Propose exactly as many tokens as pay, by what every width costs here and how likely the next token comes true.

    How likely that is grows with the length of the match: the log odds are linear in the logarithm of the length, from
    where the row's own tokens move them. Nothing ever pauses; a row that fares badly proposes nothing by itself.

    The three numbers of that prior were fitted on the shipped traces but `suite`, with the costs of the four shipped
    GB10 profiles. The best dozen points of the grid differ by a hundredth of what the oracle gains.
    """

    needs_prices: ClassVar[bool] = True

    pipeline_after: Annotated[int, Range(0, 1024)] = 0
    """Plain rounds in a row after which decoding is pipelined again (0, at once: a pipelined stretch loses one overlap
    however long it is, and so does every plain round outside of one)."""
    ngram_max: Annotated[int, Range(1, 16)] = 8
    """Longest suffix, in tokens, that is looked for (8: of several occurrences the one with most in common is
    continued; with 3 a twelfth of the gain was missing, and more than 8 added nothing)."""
    even_at: Annotated[float, Range(0.1, 64.0)] = 2.4
    """Tokens of a match at which the next one is as likely to come true as not (fitted)."""
    growth: Annotated[float, Range(0.0, 4.0)] = 0.9
    """Power of the match's length with which the odds grow (fitted)."""
    surprise: Annotated[float, Range(0.0, 4.0)] = 0.03
    """How much a token moves the row's log odds, times how unlikely it was that it did what it did (fitted)."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that knows nothing of its row yet."""
        return Valuer(self, prices)


class Claim(NamedTuple):
    """That the token after a context comes true."""

    context: int
    length: int
    """Tokens of the match that says so."""


class Valuer(Governor):
    """The running half: the row's own log odds, and what was claimed and not seen yet."""

    def __init__(self, policy: ExpectedValue, prices: Prices) -> None:
        self._policy = policy
        self._machine = self._prices = prices
        self._rows = 1
        self._shift = 0.0
        self._claim: Claim | None = None
        self._asked = False
        """Whether anybody asked right behind the last claim; if then nothing was found, it failed."""
        self._proposed = 0

    def budget(self, state: State) -> int:
        """Return a full block: how much of it pays is seen once it is known what was found."""
        self._notice(state.context)
        return self._policy.max_draft

    def choose(self, state: State, match: Match) -> int:
        """Return how many tokens pay, given what was seen of the last claim."""
        if state.rows != self._rows:
            self._rows, self._prices = state.rows, self._machine.among(state.rows)
        length = self._settled(state.context, match.length)
        self._claim, self._asked = Claim(state.context, length), False
        if not state.in_flight:
            self._proposed, _ = self._best(state.context, length, match.tokens)
            return self._proposed
        # The token in flight has to come true as well, and whatever is found behind it, the pipeline is interrupted.
        _, profit_s = self._best(state.context + 1, length + 1, match.tokens)
        pays = self._chance(length) * profit_s > self._prices.overlap_s(state.context - 1)
        return match.tokens if pays else 0

    def record(self, accepted: int) -> None:
        """Learn from every token up to the first that failed; behind a whole proposal the match goes on."""
        context, length = self._claim or Claim(0, 1)
        for landed in range(min(accepted, self._proposed)):
            self._learn(length + landed, True)
        if accepted < self._proposed:
            self._learn(length + accepted, False)
            self._claim = None
        else:
            self._claim, self._asked = Claim(context + accepted, length + accepted), False

    def rest(self, context: int, asks: int) -> int:
        """Take nothing: what is asked is granted, and only what is found changes anything."""
        self._notice(context)
        return 0

    def _notice(self, context: int) -> None:
        if self._claim is not None and context == self._claim.context + 1:
            self._asked = True

    def _settled(self, context: int, found: int) -> int:
        """Learn what became of the last claim, and return the length of the match now.

        Args:
            context: where something was found.
            found: tokens of the suffix that was found, at most `ngram_max`, however long the match is.
        """
        if self._claim is None:
            return found
        before, length = self._claim
        if context == before:
            return length
        if not self._asked:
            return found  # a server may not have asked for a while, and nobody knows what became of it
        true = context == before + 1 and found >= min(length + 1, self._policy.ngram_max)
        self._learn(length, true)
        return length + 1 if true else found

    def _best(self, context: int, length: int, most: int) -> tuple[int, float]:
        """Return how many tokens to verify at `context` behind a match of `length`, and the profit in seconds."""
        chances = accumulate((self._chance(length + place) for place in range(most)), mul)
        return most_profitable(self._prices, context - 1, list(chances))

    def _chance(self, length: int) -> float:
        """Return how likely the token behind a match of that length comes true."""
        odds = math.exp(self._shift) * math.pow(length / self._policy.even_at, self._policy.growth)
        return odds / (1 + odds)

    def _learn(self, length: int, true: bool) -> None:
        self._shift += self._policy.surprise * (true - self._chance(length))
