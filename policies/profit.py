"""What a proposal is expected to gain, by the prices of its width and of the overlap that it loses."""

from __future__ import annotations

from collections.abc import Sequence

from policies.policy import Prices


def most_profitable(prices: Prices, context: int, chances: Sequence[float], lost: int = 0) -> tuple[int, float]:
    """Return how many tokens to propose so that the expected profit is greatest, and that profit; 0 where none pays.

    Args:
        prices: of the machine.
        context: positions in the KV state when the verify starts.
        chances: for each number of tokens from 1 on, how likely they all land.
        lost: overlaps that proposing here loses.

    Returns:
        The tokens, and seconds.
    """
    overlap_s = prices.overlap_s(context)
    # What plain decoding spends on a token less the host's work for it, which a verified token needs as well.
    token_s = prices.sync_s(1, context) - overlap_s
    best, most_s, emitted = 0, 0.0, 1.0
    for proposed, chance in enumerate(chances, 1):
        emitted += chance
        profit_s = emitted * token_s - prices.sync_s(proposed + 1, context) - lost * overlap_s
        if profit_s > most_s:
            best, most_s = proposed, profit_s
    return best, most_s
