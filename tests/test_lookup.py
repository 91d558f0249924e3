"""The lookup rule: index and table against a scan of the context, and the reference's own cases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import SHADOW_TOKENS, NgramIndex, match_table

MASK = 2**64 - 1


def scan(context: list[int], ngram_max: int, ngram_min: int, most: int, match: str) -> tuple[int, list[int]]:
    """Look a context up as the rule reads: the length of the suffix found, and the tokens proposed."""
    end = len(context)
    for n in range(min(ngram_max, end - 1), ngram_min - 1, -1):
        starts = [s for s in range(end - n) if context[s : s + n] == context[end - n :]]
        if starts:
            start = (max(starts) if match == "latest" else min(starts)) + n
            return n, context[start : min(start + most, end)]
    return 0, []


def lcg(seed: int, alphabet: int, count: int) -> Iterator[int]:
    """Yield the reference's test stream."""
    for _ in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & MASK
        yield (seed >> 33) % alphabet


settings = st.tuples(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 9), st.sampled_from(["latest", "earliest"])
).map(lambda drawn: (max(drawn[:2]), min(drawn[:2]), *drawn[2:]))


@pytest.mark.parametrize(
    ("context", "ngram_max", "ngram_min", "cap", "expected"),
    [
        ("9 1 2 3 4 5 6 8 1 2", 2, 1, 3, "3 4 5"),
        ("1 2 3 4 1 2", 2, 1, 7, "3 4 1 2"),
        ("1 2 3 4 1 2", 2, 1, 1, "3"),
        ("0 0 0 5 2 7 2 9 5 2", 2, 1, 1, "7"),
        ("1 2 10 1 2 20 1 2", 2, 2, 1, "20"),
        ("1 2 3 4", 1, 1, 3, ""),
        ("4 7 8 3 4", 2, 1, 2, "7 8"),
        ("4 7 8 3 4", 2, 2, 2, ""),
        ("4 7 8 3 4", 3, 2, 7, ""),
        ("", 3, 1, 7, ""),
        ("1", 3, 1, 7, ""),
        ("1 1", 3, 1, 7, "1"),
        ("7 7 7 7", 2, 1, 5, "7"),
    ],
)
def test_the_reference_s_cases(context: str, ngram_max: int, ngram_min: int, cap: int, expected: str) -> None:
    tokens = [int(word) for word in context.split()]

    index = NgramIndex(tokens, ngram_max=ngram_max, ngram_min=ngram_min)

    assert index.proposal(len(tokens), cap) == [int(word) for word in expected.split()]


def test_the_earliest_match_is_the_smallest_start_of_the_longest_suffix() -> None:
    tokens = [1, 2, 10, 1, 2, 20, 1, 2]

    index = NgramIndex(tokens, ngram_max=2, ngram_min=2, match="earliest")

    assert index.proposal(8, 1) == [10]


@pytest.mark.parametrize(("seed", "alphabet"), [(1, 3), (2, 5), (3, 11), (4, 40)])
@pytest.mark.parametrize(("ngram_max", "ngram_min", "cap"), [(3, 1, 7), (3, 2, 7), (5, 2, 4), (1, 1, 3)])
def test_the_index_equals_the_scan_on_the_reference_s_streams(
    seed: int, alphabet: int, ngram_max: int, ngram_min: int, cap: int
) -> None:
    tokens: list[int] = []
    index = NgramIndex(tokens, ngram_max=ngram_max, ngram_min=ngram_min, max_draft=cap)

    for token in lcg(seed, alphabet, 300):
        tokens.append(token)

        assert index.proposal(len(tokens), cap) == scan(tokens, ngram_max, ngram_min, cap, "latest")[1]


def test_the_index_grown_in_blocks_equals_the_scan() -> None:
    stream = list(lcg(7, 6, 300))
    index = NgramIndex(stream, ngram_max=3, ngram_min=2, max_draft=7)
    context = 50

    while context < 300:
        assert index.proposal(context, 7) == scan(stream[:context], 3, 2, 7, "latest")[1]
        context += 1 + context % 7


@given(
    prompt=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    reply=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    chosen=settings,
)
def test_table_and_index_equal_the_scan_at_every_context(
    prompt: list[int], reply: list[int], chosen: tuple[int, int, int, str]
) -> None:
    ngram_max, ngram_min, cap, match = chosen
    text = prompt + reply
    table = match_table(
        np.array(prompt, np.int32),
        np.array(reply, np.int32),
        ngram_max=ngram_max,
        ngram_min=ngram_min,
        match=match,
        cap=cap,
    )
    recorded = table.lookup(cap)
    index = NgramIndex(text, ngram_max=ngram_max, ngram_min=ngram_min, match=match, max_draft=cap)

    for context in range(len(prompt) + 1, len(text) + 1):
        length, proposal = scan(text[:context], ngram_max, ngram_min, cap, match)
        _, looked_up = scan(text[:context], ngram_max, ngram_min, max(cap, SHADOW_TOKENS), match)
        pairs = zip(looked_up, text[context:], strict=False)
        true = next((place for place, (claimed, token) in enumerate(pairs) if claimed != token), None)
        true = min(len(looked_up), len(text) - context) if true is None else true

        assert index.proposal(context, cap) == proposal
        assert index.find(context) == recorded.find(context) == len(proposal)
        assert index.match_length(context) == recorded.match_length(context) == length
        assert recorded.true_tokens(context) == true
        assert index.claims(context) == recorded.claims(context) == (len(looked_up) >= SHADOW_TOKENS)


@given(
    prompt=st.lists(st.integers(0, 2), min_size=1, max_size=20),
    reply=st.lists(st.integers(0, 2), min_size=1, max_size=20),
)
def test_a_claim_is_settled_alike_by_index_and_table(prompt: list[int], reply: list[int]) -> None:
    text = prompt + reply
    recorded = match_table(np.array(prompt, np.int32), np.array(reply, np.int32)).lookup(7)

    for start in range(len(prompt) + 1, len(text) + 1):
        index = NgramIndex(text)
        if not index.claims(start):
            continue
        for context in range(start, len(text) + 1):
            assert recorded.settle(start, context) == index.settle(start, context)


def test_a_table_refuses_wider_blocks_than_it_was_made_for() -> None:
    table = match_table(np.array([1], np.int32), np.array([1], np.int32), cap=4)

    with pytest.raises(ValueError, match=r"made for blocks of at most 4 tokens \(got 5\)"):
        table.lookup(5)
