"""The engine on SmolLM2: on a CPU a wide forward gives the very logits of single steps, so no reply may differ."""

from __future__ import annotations

import json

import click.testing
import numpy as np
import pytest

from calibration import checkpoints
from calibration.engine import Engine, Sampler
from simulator.replay.cli import replay

pytestmark = [pytest.mark.mlx, pytest.mark.checkpoint]


def opened(dtype: str) -> Engine:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    engine = checkpoints.open_engine("smollm2", dtype)
    if not str(engine.provenance()["device"]).endswith("cpu"):
        pytest.skip("a GPU rounds wide forwards otherwise")
    return engine


@pytest.mark.parametrize("dtype", ["bfloat16", "q4"])
def test_wide_and_single_forwards_agree(dtype: str) -> None:
    engine = opened(dtype)
    prompt = engine.encode("Say hello.")
    engine.prefill(prompt, Sampler())
    said, rows = [engine.read().token], []
    for _ in range(6):
        rows.append(engine.logits(said[-1:])[0])
        said.append(int(np.argmax(rows[-1])))
    engine.trim(6)

    wide = engine.logits(said[:6])

    assert np.argmax(wide, axis=1).tolist() == said[1:]
    assert np.array_equal(wide, np.array(rows))


def test_a_free_reply_is_plain_decodings() -> None:
    opened("bfloat16")
    asked = (
        "--policy fixed:ngram_min=1 --trace chat --tokens 20 --mode free --rounds 1 --model smollm2 --dtype bfloat16"
    )

    result = click.testing.CliRunner().invoke(replay, [*asked.split(), "--allow-mismatch", "--json"])

    (one,) = json.loads(result.stdout)["requests"]
    assert one["drafted_rounds"] > 0
    assert one["parity"] == {"verdict": "same"}
    # Another processor may have rounded otherwise when the recording was made.
    assert one["recording"] != {"verdict": "same"} or one["counters_equal"]
