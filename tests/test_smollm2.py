"""The real SmolLM2: its tokenizer, its conversion, and the shipped traces that it said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import traces
from calibration import cache, checkpoints, smollm2
from calibration.engine import Engine, EngineError, Reading, Sampler

pytestmark = [pytest.mark.mlx, pytest.mark.checkpoint]

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"


def opened(dtype: str) -> Engine:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    try:
        return checkpoints.open_engine("smollm2", dtype)
    except EngineError as error:
        if "pip could not download" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="module")
def engine() -> Engine:
    return opened("bfloat16")


def readings(engine: Engine, tokens: list[int], count: int) -> list[Reading]:
    engine.prefill(tokens, Sampler(), margins=True)
    found = []
    for left in range(count - 1, -1, -1):
        if left:
            engine.submit()
        found.append(engine.read())
    return found


def test_a_message_is_put_into_the_models_own_chat_form(engine: Engine) -> None:
    tokens = engine.encode("Hi")

    assert engine.decode(tokens) == f"{SYSTEM}<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    # <|im_start|> is 1, <|im_end|> 2 and the line break 198; two tokens between them say `assistant`, and
    # no further token begins or ends the prompt.
    assert (tokens[0], tokens[-4], tokens[-1]) == (1, 1, 198)
    assert [tokens.count(1), tokens.count(2)] == [3, 2]


@pytest.mark.parametrize(
    "text",
    [
        "In 2024 I paid 315.50",
        "naïve café, Größe, 日本語, Ελλάδα",
        "👩‍🚀 lifts off 🚀",
        "\ttabs\n\n  and   spaces ",
        "x²+½",
    ],
)
def test_every_text_comes_back_from_its_tokens(engine: Engine, text: str) -> None:
    bare, asked = engine.encode(""), engine.encode(text)

    assert engine.decode(asked) == engine.decode(bare).replace("user\n", f"user\n{text}")


def test_every_digit_is_a_token_of_its_own(engine: Engine) -> None:
    # The digits 0 to 9 are the ids 32 to 41, and the space before a number stands alone.
    tokens = engine.encode("In 2024")

    place = tokens.index(34)
    assert tokens[place - 1 : place + 4] == [216, 34, 32, 34, 36]


def test_only_the_end_of_a_message_ends_a_reply(engine: Engine) -> None:
    assert engine.eos == {2}


def test_a_greedy_reply_is_sensible_in_every_dtype(engine: Engine) -> None:
    tokens = engine.encode("What is the capital of France? Answer in one sentence.")

    wide = readings(engine, tokens, 8)
    narrow = readings(opened("q4"), tokens, 8)

    assert engine.decode([reading.token for reading in wide]) == "The capital of France is Paris.<|im_end|>"
    assert [reading.token for reading in narrow] == [reading.token for reading in wide]
    # bfloat16 logits around 20 are 0.125 apart, so a difference of two of them may be off by about twice that.
    assert [reading.margin for reading in narrow] == pytest.approx([reading.margin for reading in wide], abs=0.5)


def test_the_shipped_chat_is_what_the_model_says(engine: Engine) -> None:
    if not str(engine.provenance()["device"]).endswith("cpu"):
        pytest.skip("a GPU rounds otherwise")
    shipped = traces.load("chat").requests[0]

    again = [reading.token for reading in readings(engine, shipped.prompt.tolist(), 16)]

    assert again == shipped.reply[:16].tolist()


def test_the_shipped_traces_name_the_model_and_its_tokenizer(engine: Engine) -> None:
    provenance = engine.provenance()

    for name in ("copy", "edit_code", "edit_json", "summary", "email", "story", "chat", "long_copy"):
        header = traces.load(name).header
        # The order of the tensors in the converted file is the C++ library's, and so is its hash.
        same = (
            "model",
            "checkpoint",
            "dtype",
            "tokenizer_sha256",
            *(["weights_sha256"] if sys.platform == "linux" else []),
        )
        assert {key: header[key] for key in same} == {key: provenance[key] for key in same}


CONVERT = """
import sys
from pathlib import Path
from calibration import cache, mlx_engine
print(cache.smollm2_checkpoint(Path(sys.argv[1]), "q4", mlx_engine))
"""


@pytest.fixture
def fresh_cache(engine: Engine, tmp_path: Path) -> Callable[[], Path]:
    """Return a maker of a cache that has the downloaded file and nothing converted."""

    def make() -> Path:
        name = Path(smollm2.GGUF_MEMBER).name
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / name).symlink_to(cache.cache_directory() / name)
        return tmp_path / "cache"

    return make


def test_two_conversions_at_once_leave_one_whole_checkpoint(fresh_cache: Callable[[], Path]) -> None:
    directory = fresh_cache()
    command = [sys.executable, "-c", CONVERT, str(directory)]

    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]

    converted = directory / "SmolLM2-135M-Instruct-q4-1"
    assert said == [f"{converted}\n", f"{converted}\n"]
    assert sorted(path.name for path in directory.iterdir()) == [
        "SmolLM2-135M-Instruct-q4-1",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
    ]
    assert cache.sha256(converted / "model.safetensors") == cache.sha256(
        cache.cache_directory() / "SmolLM2-135M-Instruct-q4-1" / "model.safetensors"
    )
