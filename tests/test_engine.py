"""What an engine does between prefill and trim, on MLX and on the script: the same tokens whatever the widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibration import Costs, checkpoints, rollback
from calibration.engine import Engine, EngineError, Sampler
from calibration.resources import enough_memory
from calibration.scripted_engine import ScriptedEngine
from tests import random_checkpoints

GREEDY = Sampler()
WARM = Sampler(temperature=0.8, seed=7)
PROMPT = [5, 9, 200, 31, 5, 9]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return opened(tmp_path_factory.mktemp("llama") / "tiny", random_checkpoints.LLAMA)


def opened(directory: Path, config: dict[str, Any]) -> Engine:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    return checkpoints.open_engine(str(random_checkpoints.make(directory, config)), None)


def plain(engine: Engine, sampler: Sampler, count: int) -> list[int]:
    engine.prefill(PROMPT, sampler)
    found = []
    for _ in range(count - 1):
        engine.submit()
        found.append(engine.read().token)
    return [*found, engine.read().token]


@pytest.mark.mlx
@pytest.mark.parametrize("sampler", [GREEDY, WARM], ids=["greedy", "drawn"])
def test_a_wide_forward_chooses_what_single_steps_choose(engine: Engine, sampler: Sampler) -> None:
    said = plain(engine, sampler, 8)

    engine.prefill(PROMPT, sampler)
    assert engine.read().token == said[0]
    assert engine.forward(said[:4]) == said[1:5]
    assert engine.context == len(PROMPT) + 4


@pytest.mark.mlx
@pytest.mark.parametrize("sampler", [GREEDY, WARM], ids=["greedy", "drawn"])
def test_what_was_rejected_leaves_no_trace(engine: Engine, sampler: Sampler) -> None:
    said = plain(engine, sampler, 8)

    engine.prefill(PROMPT, sampler)
    engine.read()
    engine.forward([said[0], said[1], 17, 18, 19])
    engine.trim(3)
    engine.submit(said[2])
    engine.submit()

    assert engine.context == len(PROMPT) + 4
    assert [engine.read().token for _ in range(2)] == said[3:5]


@pytest.mark.mlx
def test_a_prefill_can_be_gone_back_to(engine: Engine) -> None:
    said = plain(engine, GREEDY, 6)

    engine.submit()
    engine.trim(engine.context - len(PROMPT))

    assert engine.context == len(PROMPT)
    assert engine.forward(said[:3]) == said[1:4]


@pytest.mark.mlx
def test_logits_are_of_the_positions_that_were_fed(engine: Engine) -> None:
    said = plain(engine, GREEDY, 4)

    engine.prefill(PROMPT, GREEDY)
    engine.read()
    rows = engine.logits(said[:3])

    assert rows.shape == (3, engine.vocabulary)
    assert np.argmax(rows, axis=1).tolist() == said[1:4]


@pytest.mark.mlx
@pytest.mark.parametrize(
    "where",
    [
        lambda known: {"args": known},
        lambda known: {"config": known},
        lambda known: {"args": SimpleNamespace(text_config=known)},
        lambda known: {"args": SimpleNamespace(text_config=vars(known))},
    ],
    ids=["args", "config", "text_config", "text_config as a mapping"],
)
def test_a_model_may_say_in_several_places_what_it_knows(where: Callable[[Any], dict[str, Any]]) -> None:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    from calibration.mlx_engine import MlxModel

    known = SimpleNamespace(vocab_size=7, max_position_embeddings=9)

    model = MlxModel(SimpleNamespace(layers=[], **where(known)))

    assert (model.vocabulary, model.longest) == (7, 9)
    known.max_position_embeddings = "9"
    assert model.longest is None


@pytest.mark.mlx
def test_a_trim_beyond_the_state_is_an_error(engine: Engine) -> None:
    engine.prefill(PROMPT, GREEDY)
    engine.read()

    with pytest.raises(EngineError, match=r"^the model's state gave back 6 positions where 7 were rejected$"):
        engine.trim(7)


@pytest.mark.mlx
def test_margins_are_found_only_where_they_are_asked_for(engine: Engine) -> None:
    engine.prefill(PROMPT, GREEDY)
    unasked = engine.read()
    engine.prefill(PROMPT, GREEDY, margins=True)
    asked = engine.read()

    assert unasked.token == asked.token
    assert np.isnan(unasked.margin)
    assert asked.margin > 0


@pytest.mark.mlx
def test_the_host_can_be_kept_busy(engine: Engine) -> None:
    began_s = engine.clock_s()
    engine.work(0.002)

    assert engine.clock_s() - began_s >= 0.002


@pytest.mark.mlx
def test_states_that_a_layer_keeps_beside_each_other_roll_back_together(tmp_path: Path) -> None:
    engine = opened(tmp_path / "tiny", random_checkpoints.TWO_STATES)
    said = plain(engine, GREEDY, 8)

    engine.check_rollback(100)
    engine.prefill(PROMPT, GREEDY)
    engine.read()
    assert engine.forward([said[0], 9, 10, 11])[0] == said[1]
    engine.trim(3)
    assert engine.forward(said[1:4]) == said[2:5]
    engine.pretend(64)
    engine.forward([1, 2])
    engine.trim(2)
    assert engine.context == 64


@pytest.mark.mlx
@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            random_checkpoints.SLIDING,
            "RotatingKVCache keeps a sliding window of 32 positions and overwrites the oldest; this run needs 40",
        ),
        (
            random_checkpoints.SLIDING_LLAMA,
            "RotatingKVCache keeps a sliding window of 48 positions and overwrites the oldest",
        ),
        (random_checkpoints.RECURRENT, "ArraysCache is a recurrent state, in which every token is mixed for good"),
    ],
    ids=["gemma3", "llama", "mamba"],
)
def test_a_model_that_cannot_roll_back_is_refused(config: dict[str, Any], words: str, tmp_path: Path) -> None:
    engine = opened(tmp_path / "tiny", config)

    with pytest.raises(EngineError) as refused:
        engine.check_rollback(40)
    assert str(refused.value) == f"the model cannot roll back rejected proposals: a layer's {words}"


@pytest.mark.mlx
def test_a_run_longer_than_the_model_is_refused(engine: Engine) -> None:
    engine.check_rollback(512)

    with pytest.raises(EngineError, match=r"^the model was made for contexts of up to 512 positions \(this run needs"):
        engine.check_rollback(513)


@pytest.mark.parametrize(
    ("kind", "window", "words"),
    [
        ("ChunkedKVCache", None, "ChunkedKVCache drops whole chunks of old positions"),
        ("NewCache", None, "NewCache is of a kind not known to keep every position"),
        ("KVCache", 40, "KVCache keeps 40 positions and this run needs 40"),
    ],
)
def test_a_state_is_judged_by_its_kind_and_its_window(kind: str, window: int | None, words: str) -> None:
    with pytest.raises(EngineError) as refused:
        rollback.check([("KVCache", None), (kind, window)], 40, None)

    assert str(refused.value) == f"the model cannot roll back rejected proposals: a layer's {words}"


def test_the_script_answers_as_an_engine_does() -> None:
    said = [7, 8, 9, 10, 11, 12]
    engine = ScriptedEngine({(1, 2): said}, end=50)

    engine.prefill([1, 2], GREEDY)
    assert engine.read().token == 7
    assert engine.forward([7, 8, 3]) == [8, 9, 10]
    engine.trim(1)
    engine.submit(9)
    engine.submit()
    assert [engine.read().token for _ in range(2)] == [10, 11]
    assert engine.forward([11, 12, 50]) == [12, 50, 50]
    assert np.argmax(engine.logits([12]), axis=1).tolist() == [50]


def test_a_script_may_say_otherwise_in_a_wide_forward() -> None:
    engine = ScriptedEngine({(1, 2): [7, 8, 9]}, wide={3: {4: 1.5}})

    def second(tokens: Sequence[int]) -> int:
        engine.prefill([1, 2], GREEDY)
        engine.read()
        return engine.forward(tokens)[0]

    assert (second([7]), second([7, 8])) == (8, 4)


def test_the_scripts_clock_is_the_time_model() -> None:
    costs = Costs("m", range(100), {1: 0.010, 3: 0.024}, launch_s=0.001, read_s=0.002, run_ahead_s=0.004)
    engine = ScriptedEngine({(1, 2): [7, 8, 9, 10]}, costs)
    engine.prefill([1, 2], GREEDY)
    engine.read()

    # launch + device + read, then what a submit blocks: until 4 ms before its forward ends.
    engine.forward([7, 8, 9])
    assert engine.clock_s() == pytest.approx(0.027)
    assert engine.submit(10) == 0.001
    assert engine.clock_s() == pytest.approx(0.027 + 0.011 - 0.004)
    engine.work(0.001)
    engine.read()
    assert engine.clock_s() == pytest.approx(0.027 + 0.011 + 0.002)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory; use a smaller model, fewer contexts or a shorter trace"),
        (
            RuntimeError("Unable to allocate 9 bytes.\nmore"),
            "out of memory (Unable to allocate 9 bytes.); use a smaller model, fewer contexts or a shorter trace",
        ),
    ],
)
def test_running_out_of_memory_is_said_in_one_line(error: Exception, words: str) -> None:
    with pytest.raises(EngineError) as refused, enough_memory():
        raise error

    assert str(refused.value) == words


def test_another_failure_is_a_bug_and_stays_one() -> None:
    with pytest.raises(RuntimeError, match=r"^shapes differ$"), enough_memory():
        raise RuntimeError("shapes differ")
