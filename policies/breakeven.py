"""Propose only what pays on this machine, by its prices and by what landed lately.

Every threshold comes out of the prices (docs/explanation/break-even.md); the settings only say how fast to believe.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Annotated, ClassVar

from policies.governor import Governor, Match, State
from policies.lookup import SHADOW_TOKENS
from policies.policy import LookupPolicy, Prices
from policies.profit import most_profitable
from policies.settings import Range


@dataclass(frozen=True, kw_only=True)
class Breakeven(LookupPolicy):
    """Propose only what pays on this machine, by its prices and by what landed lately.

    A proposal has to pay for its width and for the overlap that it destroys where it is made; how wide it is, when a
    pause begins and how much evidence ends it all follow from that, and no setting says so.
    """

    needs_prices: ClassVar[bool] = True

    memory: Annotated[float, Range(1.0, 1024.0)] = 8.0
    """Verifies and probes that count: each newer one takes 1/memory off the weight of all older ones (a choice, and a
    flat one: docs/explanation/break-even.md)."""
    doubt: Annotated[float, Range(0.01, 64.0)] = 2.0
    """Trials that a first guess counts for: that a token lands every other time, that the first position is like all
    of them together, and each further one like the one before it (2: Laplace's rule, as if a token had landed once
    and failed once)."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that begins with a pause: probes are free, and without evidence nothing pays."""
        return Weigher(self, prices)


class Weigher(Governor):
    """The running half: for each position of a proposal, how often it was tried and how often it landed."""

    def __init__(self, policy: Breakeven, prices: Prices) -> None:
        self.paused = True
        self._machine = self._prices = prices
        self._rows = 1
        self._most = policy.max_draft
        self._doubt = policy.doubt
        self._kept = 1 - 1 / policy.memory
        self._restart = policy.pipeline_after + 1
        """Overlaps that an interruption of the pipeline loses: the plain rounds before it restarts, and the restart."""
        self._tried = [0.0] * policy.max_draft
        self._landed = [0.0] * policy.max_draft
        self._context = 0
        self._proposed = 0
        self._confirmed = False
        """Whether a probe has come true since somebody last thought about resuming."""

    @property
    def probing(self) -> bool:
        """Whether it is paused."""
        return self.paused

    def budget(self, state: State) -> int:
        """Return a full block unless paused; resume when a probe came true and an isolated verify would pay."""
        self._context = state.context
        if state.rows != self._rows:
            self._rows = state.rows
            self._prices = self._machine.among(state.rows)
        if self._confirmed:
            self._confirmed = False
            self.paused = not self._best(self._most, self._restart)
        return 0 if self.paused else self._most

    def choose(self, state: State, match: Match) -> int:
        """Return the number of tokens that is expected to pay most here; where none pays, pause."""
        lost = self._restart if state.in_flight else min(state.plain_streak, self._restart - 1)
        self._proposed = self._best(match.tokens, lost)
        self.paused = not self._proposed
        return self._proposed

    def record(self, accepted: int) -> None:
        """Learn from a verify; pause when the next would not pay with a single plain round between."""
        self._learn(self._proposed, accepted)
        self.paused = not self._best(self._most, 1)

    def confirm(self) -> None:
        """Learn that the tokens of a probe would have landed."""
        self._learn(SHADOW_TOKENS, SHADOW_TOKENS)
        self._confirmed = self.paused

    def refute(self) -> None:
        """Learn that a probe would have failed; which of its tokens did is not told, so each takes its likely part."""
        reached, *chances = [1.0, *self._chances(SHADOW_TOKENS)]
        whole = chances[-1]
        self._forget()
        for position, chance in enumerate(chances):
            self._tried[position] += (reached - whole) / (1 - whole)
            self._landed[position] += (chance - whole) / (1 - whole)
            reached = chance

    def rest(self, context: int, asks: int) -> int:
        """Take all asks of a pause: only a probe that comes true can end it."""
        return asks if self.paused else 0

    def _best(self, most: int, lost: int) -> int:
        """Return how many tokens to propose so that the expected profit is greatest; 0 where there is none.

        Args:
            most: tokens that could be proposed.
            lost: overlaps that proposing here loses.
        """
        return most_profitable(self._prices, self._context - 1, self._chances(most), lost)[0]

    def _chances(self, most: int) -> list[float]:
        """Return for each of the first positions how likely it is to land, those before it included.

        The first guess for the first position is how often tokens landed at any, since a copy is one at all of them;
        that of every other is the estimate before it.
        """
        doubt, positions = self._doubt, []
        guess = (sum(self._landed) + doubt / 2) / (sum(self._tried) + doubt)
        for tried, landed in zip(self._tried[:most], self._landed, strict=False):
            guess = (landed + doubt * guess) / (tried + doubt)
            positions.append(guess)
        return list(accumulate(positions, mul))

    def _learn(self, proposed: int, accepted: int) -> None:
        """Count a trial of every position up to the first that failed."""
        self._forget()
        for position in range(min(accepted, self._most)):
            self._tried[position] += 1
            self._landed[position] += 1
        if accepted < min(proposed, self._most):
            self._tried[accepted] += 1

    def _forget(self) -> None:
        """Take some weight off what was learned so far."""
        kept = self._kept
        self._tried = [kept * tried for tried in self._tried]
        self._landed = [kept * landed for landed in self._landed]
