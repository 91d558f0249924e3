"""What reading the prompt costs: a line or a measured table."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from calibration import checks
from calibration.errors import ProfileError


@dataclass(frozen=True)
class Prefill:
    """A fixed part and a part per token, taken for every length."""

    fixed_s: float = 0.0
    """Seconds, whatever the length."""
    per_token_s: float = 0.0
    """Seconds per prompt token."""
    source: str = ""
    """Where the figures come from."""

    def __post_init__(self) -> None:
        checks.not_negative(self.fixed_s, "prefill.fixed_s")
        checks.not_negative(self.per_token_s, "prefill.per_token_s")

    def seconds_for(self, tokens: int) -> float:
        """Return the seconds for so many tokens; none take none."""
        return self.fixed_s + self.per_token_s * tokens if tokens > 0 else 0.0


NO_PREFILL = Prefill()
"""A prompt that costs nothing, for cost models that are about decoding only."""


@dataclass(frozen=True)
class PrefillTable:
    """Measured lengths: linear in between, the first figure below the first, nothing beyond the last."""

    tokens: tuple[int, ...]
    """Measured prompt lengths, ascending."""
    seconds: tuple[float, ...]
    """Seconds at each."""
    source: str = ""
    """Where the figures come from."""

    def __post_init__(self) -> None:
        checks.ascending(self.tokens, "prefill.tokens")
        if self.tokens[0] < 1:
            raise ProfileError(f"prefill.tokens: must be at least 1 (got {self.tokens[0]})")
        if len(self.seconds) != len(self.tokens):
            raise ProfileError(
                f"prefill.seconds: must have one entry per entry of tokens (got {len(self.seconds)} for "
                f"{len(self.tokens)})"
            )
        for place, seconds in enumerate(self.seconds):
            checks.positive(seconds, f"prefill.seconds[{place}]")

    def seconds_for(self, tokens: int) -> float:
        """Return the seconds for so many tokens; none take none.

        A prompt shorter than the first measured one costs as much as that one: a short prefill is bound by reading
        the weights, so its cost hardly falls with its length, and this errs on the side of the slower.

        Raises:
            ProfileError: beyond the longest measured prompt.
        """
        if tokens <= 0:
            return 0.0
        if tokens > self.tokens[-1]:
            raise ProfileError(f"a prompt of {tokens} tokens is beyond the {self.tokens[-1]} that prefill was timed to")
        place = bisect_left(self.tokens, tokens)
        if place == 0:
            return self.seconds[0]
        left, right = self.tokens[place - 1], self.tokens[place]
        share = (tokens - left) / (right - left)
        return self.seconds[place - 1] + share * (self.seconds[place] - self.seconds[place - 1])
