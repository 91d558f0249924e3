"""The engine on SmolLM2: on a CPU a wide forward gives the very logits of single steps, so no reply may differ."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import checkpoints
from calibration.engine import Sampler

pytestmark = [pytest.mark.mlx, pytest.mark.checkpoint]


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_wide_and_single_forwards_agree(dtype: str) -> None:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    engine = checkpoints.open_engine("smollm2", dtype)
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
