"""Prompt lookup on a model that mlx-lm loaded: what mlx-lm's own generation says, and a cache that can be used on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import policies
from calibration.engine import EngineError, Sampler
from policies import PolicyError
from simulator.generation import lookup_generate_step
from tests import random_checkpoints

pytestmark = pytest.mark.mlx

PROMPT = [5, 9, 200, 31, 5, 9, 200, 31, 5, 9]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    return loaded(tmp_path_factory.mktemp("generation") / "tiny", random_checkpoints.LLAMA)


def loaded(directory: Path, config: dict[str, Any]) -> Any:
    from mlx_lm.utils import load_model

    return load_model(random_checkpoints.make(directory, config))[0]


def mlx_lms(model: Any, count: int) -> list[tuple[int, Any]]:
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    return [(int(token), row) for token, row in generate_step(mx.array(PROMPT), model, max_tokens=count)]


@pytest.mark.parametrize("policy", ["gated", "graded", "fixed:ngram_min=1"])
def test_it_says_what_mlx_lm_says(model: Any, policy: str) -> None:
    import mlx.core as mx

    expected = mlx_lms(model, 60)

    found = list(lookup_generate_step(PROMPT, model, policy, max_tokens=60))

    assert [token for token, _, _ in found] == [token for token, _ in expected]
    for (_, ours, _), (_, theirs) in zip(found, expected, strict=True):
        assert mx.allclose(ours, theirs, atol=1e-4).item()


def test_tokens_that_were_proposed_are_marked(model: Any) -> None:
    found = list(lookup_generate_step(PROMPT, model, policies.load("fixed:ngram_min=1"), max_tokens=60))

    marks = [proposed for _, _, proposed in found]
    assert any(marks)
    assert not marks[0]


@pytest.mark.parametrize("asked", [1, 2, 3, 5, 8, 13, 21, 34])
def test_whoever_stops_asking_finds_a_cache_to_go_on_with(model: Any, asked: int) -> None:
    from mlx_lm.models.cache import make_prompt_cache

    whole = [token for token, _, _ in lookup_generate_step(PROMPT, model, "fixed:ngram_min=1", max_tokens=50)]
    cache = make_prompt_cache(model)

    steps = lookup_generate_step(PROMPT, model, "fixed:ngram_min=1", max_tokens=50, prompt_cache=cache)
    first = [next(steps)[0] for _ in range(asked)]
    steps.close()

    assert cache[0].offset == len(PROMPT) + asked - 1
    rest = lookup_generate_step(first[-1:], model, "fixed", max_tokens=50 - asked, prompt_cache=cache)
    assert [*first, *(token for token, _, _ in rest)] == whole


def test_drawn_tokens_do_not_depend_on_the_policy(model: Any) -> None:
    warm = Sampler(temperature=0.7, seed=3)

    said = [
        [token for token, _, _ in lookup_generate_step(PROMPT, model, policy, max_tokens=40, sampler=warm)]
        for policy in ("fixed:ngram_min=1", "gated:max_draft=1")
    ]

    assert said[0] == said[1]


def test_no_tokens_are_no_tokens(model: Any) -> None:
    assert list(lookup_generate_step(PROMPT, model, max_tokens=0)) == []


def test_what_cannot_be_generated_is_refused_at_once(model: Any, tmp_path: Path) -> None:
    recurrent = loaded(tmp_path / "mamba", random_checkpoints.RECURRENT)

    with pytest.raises(PolicyError, match=r"^policy 'plain' proposes nothing; use mlx-lm's generate_step$"):
        lookup_generate_step(PROMPT, model, "plain")
    with pytest.raises(PolicyError, match=r"^policy 'breakeven' weighs what forwards cost: prices= takes a profile's"):
        lookup_generate_step(PROMPT, model, "breakeven")
    with pytest.raises(PolicyError, match=r"^prompt: must have at least one token$"):
        lookup_generate_step([], model)
    with pytest.raises(EngineError, match=r"^the model cannot roll back rejected proposals: a layer's ArraysCache"):
        lookup_generate_step(PROMPT, recurrent)
