"""The match table: what the lookup proposes at every context of a recorded reply, and how much of it comes true.

It depends on the tokens and the lookup settings only, so one table serves every trial of a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policies.lookup import SHADOW_TOKENS

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MatchTable:
    """Lookup results for every context length from prompt + 1 to prompt + reply."""

    prompt_tokens: int
    tokens: Ints
    """Tokens proposed at each context, at most `cap`; shape (reply tokens,)."""
    true_tokens: Ints
    """How many of them, from the first on, the reply goes on with."""
    length: Ints
    """Length of the suffix that was found, 0 where none was."""
    cap: int
    """Most tokens looked up: at least `max_draft` and the tokens of a shadow probe."""
    _lookups: dict[int, RecordedLookup] = field(default_factory=dict, repr=False)

    def lookup(self, max_draft: int) -> RecordedLookup:
        """Return the answers for blocks of at most `max_draft` tokens; kept, since they hold no state."""
        if max_draft not in self._lookups:
            self._lookups[max_draft] = RecordedLookup(self, max_draft)
        return self._lookups[max_draft]


class RecordedLookup:
    """Answers a drafter out of a match table; it knows the future and so holds no state."""

    def __init__(self, table: MatchTable, max_draft: int) -> None:
        if max(max_draft, SHADOW_TOKENS) > table.cap:
            raise ValueError(f"the table was made for blocks of at most {table.cap} tokens (got {max_draft})")
        self._first = table.prompt_tokens + 1
        self._end = table.prompt_tokens + len(table.tokens)
        self._tokens: list[int] = np.minimum(table.tokens, max_draft).tolist()
        self._true: list[int] = table.true_tokens.tolist()
        self._table = table
        self._next_find = _next(table.tokens > 0)
        self._next_claim = _next(table.tokens >= SHADOW_TOKENS)

    def find(self, context: int) -> int:
        """Return how many tokens the lookup proposes, at most `max_draft`."""
        return self._tokens[context - self._first]

    def true_tokens(self, context: int) -> int:
        """Return how many proposed tokens come true, at most the table's `cap`."""
        return self._true[context - self._first]

    def match_length(self, context: int) -> int:
        """Return the length of the suffix found earlier, 0 without one."""
        return int(self._table.length[context - self._first])

    def claims(self, context: int) -> bool:
        """Return whether a shadow lookup claims `SHADOW_TOKENS` tokens here."""
        index = context - self._first
        return self._next_claim[index] == index

    def settle(self, start: int, context: int) -> bool | None:
        """Return whether the claim made at `start` came true, None while that is open at `context`."""
        true = self._true[start - self._first]
        emitted = context - start
        if true >= SHADOW_TOKENS:
            return True if emitted >= SHADOW_TOKENS else None
        return False if emitted > true else None

    def quiet(self, context: int, asks: int) -> int:
        """Return in how many of the next `asks` contexts nothing is found up to the first find."""
        index = context - self._first
        ahead = self._next_find[index] - index
        return ahead if ahead < asks else asks

    def unclaimed(self, context: int, asks: int) -> int:
        """Return the same for claims."""
        index = context - self._first
        ahead = self._next_claim[index] - index
        return ahead if ahead < asks else asks

    def known(self, context: int) -> int:
        """Return how many contexts from this one on end before the reply does."""
        return self._end - context


def match_table(
    prompt: NDArray[np.int32],
    reply: NDArray[np.int32],
    *,
    ngram_max: int = 3,
    ngram_min: int = 2,
    match: str = "latest",
    cap: int = 7,
) -> MatchTable:
    """Look up every context of a recorded reply at once.

    One stable sort per n-gram length brings equal n-grams together in the order they occur; O(n · L log L) for L
    tokens.

    Args:
        prompt: token ids, at least one.
        reply: token ids, at least one.
        ngram_max: longest suffix tried, first.
        ngram_min: shortest suffix tried.
        match: `latest` or `earliest` occurrence.
        cap: most tokens looked up; raised to the tokens of a shadow probe.

    Example:
        >>> table = match_table(np.array([7, 1, 2, 3, 4]), np.array([1, 2, 3, 9]))
        >>> table.tokens.tolist(), table.true_tokens.tolist()
        ([0, 4, 4, 0], [0, 1, 0, 0])
    """
    cap = max(cap, SHADOW_TOKENS)
    text = np.concatenate([prompt, reply]).astype(np.int64)
    last = np.arange(len(prompt), len(text))  # index of the last token of every context asked about
    before = np.full(len(reply), -1)  # where the chosen earlier occurrence ends
    length = np.zeros(len(reply), dtype=np.int64)
    # Equal ranks, equal n-grams; n starts at 1, whose ranks all longer ones are made of.
    token_rank, earlier = _ranked(text, match)
    rank = token_rank
    for n in range(1, min(ngram_max, len(text) - 1) + 1):
        if n > 1:
            rank, earlier = _ranked(_joined(rank, token_rank), match)
        if n >= ngram_min:
            found = earlier[len(prompt) :]
            before = np.where(found >= 0, found, before)
            length[found >= 0] = n
    tokens = np.where(before >= 0, np.minimum(last - before, cap), 0)
    return MatchTable(len(prompt), tokens, _true_tokens(text, last, before, tokens), length, cap)


def _joined(rank: Ints, token_rank: Ints) -> Ints:
    """Key n-grams by the (n - 1)-gram that ends one token earlier and by their last token.

    The first n - 1 tokens end no n-gram: each keeps a key of its own and so matches nothing.
    """
    previous = np.empty_like(rank)
    previous[0] = len(rank)
    previous[1:] = rank[:-1]
    return previous * len(rank) + token_rank


def _ranked(key: Ints, match: str) -> tuple[Ints, Ints]:
    """Rank keys, and return for every index the latest or earliest one before it with an equal key, -1 without."""
    order = key.argsort(kind="stable")
    ordered = key[order]
    same = ordered[1:] == ordered[:-1]  # as the one before, in the order of keys and then of indices
    rank, earlier = np.zeros_like(order), np.full_like(order, -1)
    rank[order[1:]] = np.cumsum(~same)
    repeats = order[1:][same]
    if match == "latest":
        earlier[repeats] = order[:-1][same]
    else:
        first = order[np.concatenate([[0], np.flatnonzero(~same) + 1])]
        earlier[repeats] = first[rank[repeats]]
    return rank, earlier


def _true_tokens(text: Ints, last: Ints, before: Ints, tokens: Ints) -> Ints:
    """Count, for every proposal, how many of its tokens the text goes on with."""
    true = np.zeros_like(tokens)
    found = np.flatnonzero(tokens)
    if not len(found):
        return true
    offsets = np.arange(1, int(tokens.max()) + 1)
    # Nothing follows the end: no token is -1. A proposal ends before it could run into the padding itself.
    padded = np.concatenate([text, np.full(len(offsets), -1)])
    same = padded[before[found, None] + offsets] == padded[last[found, None] + offsets]
    agreed = np.where(same.all(axis=1), len(offsets), same.argmin(axis=1))
    true[found] = np.minimum(agreed, tokens[found])
    return true


def _next(found: NDArray[np.bool_]) -> list[int]:
    """Return, for every index, the first index from there on where something was found, else the length."""
    positions = np.where(found, np.arange(len(found)), len(found))
    following: list[int] = np.minimum.accumulate(positions[::-1])[::-1].tolist()
    return following
