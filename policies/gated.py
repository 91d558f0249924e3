"""Stay narrow until a whole block lands, and once paused resume only when a shadow probe comes true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from policies.governor import Governor, State
from policies.policy import LookupPolicy, Prices
from policies.settings import Range


@dataclass(frozen=True, kw_only=True)
class Gated(LookupPolicy):
    """Stay narrow until a whole block lands, and once paused resume only when a shadow probe comes true.

    The rules and defaults are the reference engine's default on CUDA. `min_tokens_per_round`, `resume_confirmations`
    and `min_pause_tokens` are the break-even rule that its users asked for; their defaults change nothing.
    """

    narrow: Annotated[int, Range(1, 64)] = 2
    """Tokens of a narrow block (reference: 2, the widest that stays under CUDA's four-row kernel)."""
    full_at: Annotated[float, Range(0.0, 64.0)] = 1.5
    """Average of landed tokens from which a full block is granted (reference: 1.5, one whole narrow block)."""
    start_ema: Annotated[float, Range(0.0, 64.0)] = 1.0
    """The average at the start and after a resume (reference: 1.0, so that the first block is narrow)."""
    ema_weight: Annotated[float, Range(0.01, 1.0)] = 0.5
    """Weight of the newest round in the average (reference: 1/2)."""
    misses: Annotated[int, Range(1, 1024)] = 3
    """Rounds in a row without a landed token that pause a governor off probation (reference: 3)."""
    probation_tokens: Annotated[int, Range(0, 64)] = 2
    """Tokens, at most a full block, that must land in one round to end probation, during which a single miss pauses
    (reference: 2; its first version: 1; 0 is no probation)."""
    resume_confirmations: Annotated[int, Range(1, 64)] = 1
    """Shadow probes in a row that must come true before drafting resumes (reference: 1)."""
    min_pause_tokens: Annotated[int, Range(0, 65536)] = 0
    """Tokens that a pause emits before its first probe is opened (reference: 0)."""
    min_tokens_per_round: Annotated[float | None, Range(1.0, 65.0)] = None
    """Average of emitted tokens per drafted round below which the governor pauses (reference: none)."""

    def governor(self, prices: Prices) -> Governor:
        """Make a governor that starts narrow and on probation."""
        return Gate(self)


class Gate(Governor):
    """The running half: drafting or paused, an average of landed tokens, and probation."""

    def __init__(self, policy: Gated) -> None:
        self._policy = policy
        self._full_at = policy.full_at
        self._full = policy.max_draft
        self._narrow = min(policy.narrow, policy.max_draft)
        self._probation_tokens = min(policy.probation_tokens, policy.max_draft)
        self._context = 0
        self._paused_from = 0
        self._ema = policy.start_ema
        self._yield_ema = 0.0
        self._resume()

    @property
    def probing(self) -> bool:
        """Whether a pause has lasted long enough to open a probe."""
        return self.paused and self._context - self._paused_from >= self._policy.min_pause_tokens

    def budget(self, state: State) -> int:
        """Return 0 while paused, a full block when the average allows it, else a narrow one."""
        self._context = state.context
        if self.paused:
            return 0
        return self._full if self._ema >= self._full_at else self._narrow

    def record(self, accepted: int) -> None:
        """Average the round in; pause on a miss under probation, on misses in a row, or below break-even."""
        policy = self._policy
        weight = policy.ema_weight
        self._ema = (1 - weight) * self._ema + weight * accepted
        if accepted >= self._probation_tokens:
            self._probation = False
        if accepted > 0:
            self._misses = 0
        else:
            self._misses += 1
            if self._probation or self._misses >= policy.misses:
                self._pause(accepted)
        if policy.min_tokens_per_round is not None and not self.paused:
            self._break_even(policy.min_tokens_per_round, accepted)

    def confirm(self) -> None:
        """Resume after enough probes in a row came true; means nothing while drafting."""
        if not self.paused:
            return
        self._confirmed += 1
        if self._confirmed >= self._policy.resume_confirmations:
            self._resume()

    def refute(self) -> None:
        """Restart the count of probes in a row."""
        self._confirmed = 0

    def rest(self, context: int, asks: int) -> int:
        """Take all asks of a pause, in two parts when its first tokens may not be probed."""
        if not self.paused:
            return 0
        self._context = context
        unprobed = self._policy.min_pause_tokens - (context - self._paused_from)
        return min(asks, unprobed) if unprobed > 0 else asks

    def _break_even(self, threshold: float, accepted: int) -> None:
        emitted = accepted + 1
        self._yield_ema = emitted if self._rounds == 0 else (self._yield_ema + emitted) / 2
        self._rounds += 1
        # A single round is no evidence: two must back the average.
        if self._rounds >= 2 and self._yield_ema < threshold:
            self._pause(accepted)

    def _pause(self, accepted: int) -> None:
        self.paused = True
        self._misses = 0
        self._confirmed = 0
        # The round that pauses was asked for at the context last seen and emitted accepted + 1 tokens.
        self._paused_from = self._context + accepted + 1

    def _resume(self) -> None:
        self.paused = False
        self._probation = True
        self._misses = 0
        self._ema = self._policy.start_ema
        self._confirmed = 0
        self._rounds = 0
        self._yield_ema = 0.0
