"""`record` as a user sees it, and the engine it runs, on a tiny checkpoint that the tests make themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click.testing
import pytest

import traces
from calibration import cache, checkpoints, recording
from calibration.cli import record
from calibration.engine import Engine, EngineError, Sampler
from calibration.local_tokenizer import LocalTokenizer
from calibration.suites import Prompt
from tests import tiny_checkpoint
from traces.importing.text_tokens import Message

pytestmark = pytest.mark.mlx

SUITE = {
    "format": "breakeven-suite/1",
    "prompts": [
        {"id": "one", "prompt": "the first", "tags": ["short"]},
        {"id": "two", "prompt": "the second", "max_tokens": 7},
    ],
}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    return tiny_checkpoint.make(tmp_path / "tiny")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(SUITE), encoding="utf-8")
    return path


def run(*arguments: object) -> click.testing.Result:
    return click.testing.CliRunner().invoke(record, [str(argument) for argument in arguments])


def readings(engine: Engine, tokens: list[int], sampler: Sampler, count: int) -> list[int]:
    engine.prefill(tokens, sampler)
    for _ in range(count - 1):
        engine.submit()
    return [engine.read().token for _ in range(count)]


def test_a_suite_becomes_one_trace(tiny: Path, suite: Path, tmp_path: Path) -> None:
    result = run("--model", tiny, "--suite", suite, "--max-tokens", 5, "-o", tmp_path / "all.jsonl")

    assert (result.exit_code, result.stderr) == (0, "")
    trace = traces.load(str(tmp_path / "all.jsonl"))
    assert [request.id for request in trace.requests] == ["one", "two"]
    assert [request.tags for request in trace.requests] == [("short",), ()]
    for request in trace.requests:
        assert request.margins is not None
        assert len(request.margins) == len(request.reply) <= 5
        assert (request.margins >= 0).all()
        assert request.max_tokens == 5


def test_the_header_says_where_a_trace_comes_from(tiny: Path, suite: Path, tmp_path: Path) -> None:
    run("--model", tiny, "--suite", suite, "--max-tokens", 2, "-o", tmp_path / "all.jsonl")

    header = traces.load(str(tmp_path / "all.jsonl")).header
    assert header["model"] == "tiny"
    assert header["dtype"] == "float32"
    assert header["weights_sha256"] == cache.sha256(tiny / "model.safetensors")
    assert header["sampler"] == {"kind": "greedy"}
    assert header["eos"] == [2]
    assert {"mlx", "mlx_lm", "device", "tokenizer_sha256", "recorded", "suite"} <= header.keys()


def test_a_directory_gets_one_trace_for_each_request(tiny: Path, suite: Path, tmp_path: Path) -> None:
    result = run("--model", tiny, "--suite", suite, "--max-tokens", 2, "-o", f"{tmp_path}/new/", "--json")

    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["one.jsonl", "two.jsonl"]
    document = json.loads(result.stdout)
    assert [request["trace"] for request in document["requests"]] == [
        f"{tmp_path}/new/one.jsonl",
        f"{tmp_path}/new/two.jsonl",
    ]


def test_the_report_names_every_reply_and_ends_with_what_it_comes_to(tiny: Path, suite: Path, tmp_path: Path) -> None:
    result = run("--model", tiny, "--suite", suite, "--max-tokens", 3, "-o", tmp_path / "all.jsonl")

    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["model", "sampler", "one", "two", "kept"]
    assert lines[-1].endswith("in 1 trace")


def test_recording_twice_gives_the_same_replies(tiny: Path, suite: Path, tmp_path: Path) -> None:
    drawn = ["--model", tiny, "--suite", suite, "--max-tokens", 12, "--temperature", 1.5, "--seed", 3]

    run(*drawn, "-o", tmp_path / "a.jsonl")
    run(*drawn, "-o", tmp_path / "b.jsonl")

    assert traces.load(str(tmp_path / "a.jsonl")).requests == traces.load(str(tmp_path / "b.jsonl")).requests


def test_a_draw_depends_on_its_position_and_not_on_how_it_was_reached(tiny: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)
    tokens = engine.encode("the first")
    sampler = Sampler(temperature=1.5, seed=7)

    whole = readings(engine, tokens, sampler, 8)

    for done in range(1, 8):
        assert readings(engine, tokens + whole[:done], sampler, 1) == [whole[done]]


def test_a_conversation_is_put_into_the_chat_form_turn_by_turn(tiny: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)

    said = engine.decode(engine.encode("the", "x", "y"))

    form = "<|im_start|>user\nthe<|im_end|><|im_start|>assistant\nx<|im_end|><|im_start|>user\ny<|im_end|>"
    assert said == f"{form}<|im_start|>assistant\n"


def test_the_tuning_suite_is_recorded(tiny: Path, tmp_path: Path) -> None:
    result = run("--model", tiny, "--suite", "tuning", "--max-tokens", 1, "-o", tmp_path / "all.jsonl")

    assert result.exit_code == 0
    trace = traces.load(tmp_path / "all.jsonl")
    assert sum("held-out" in request.tags for request in trace.requests) == len(trace.requests) // 3


def test_an_imported_prompt_is_the_one_that_would_be_recorded(tiny: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)
    tokenizer = LocalTokenizer(str(tiny))

    turns = [Message("user", "the first"), Message("assistant", "x"), Message("user", "the second")]
    assert tokenizer.chat(turns) == engine.encode(*(turn.text for turn in turns))
    assert tokenizer.ends == engine.eos


def test_another_seed_draws_another_reply(tiny: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)
    tokens = engine.encode("the first")

    replies = {tuple(readings(engine, tokens, Sampler(1.5, seed), 8)) for seed in range(4)}

    assert len(replies) == 4


def test_a_long_prompt_in_chunks_says_what_it_says_in_one_piece(tiny: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)
    tokens = [3 + index * index % 250 for index in range(1100)]

    in_chunks = readings(engine, tokens, Sampler(), 1)

    engine.prefill(tokens[:1], Sampler())
    engine.read()
    assert in_chunks == readings(engine, tokens, Sampler(), 1)


def test_every_end_token_of_the_model_ends_a_reply(tiny: Path, tmp_path: Path) -> None:
    engine = checkpoints.open_engine(str(tiny), None)
    greedy = readings(engine, engine.encode("the first"), Sampler(), 4)
    end = next(token for token in greedy[1:] if token != greedy[0])
    other = tiny_checkpoint.make(tmp_path / "other", eos_token_id=[2, end])

    request = recording.record(checkpoints.open_engine(str(other), None), Prompt("one", "the first"), Sampler(), 4)

    assert request is not None
    assert (request.reply.tolist(), request.finish) == (greedy[: greedy.index(end)], "stop")
    assert request.max_tokens == 4


def test_a_dtype_is_cast_to_and_named(tiny: Path, suite: Path, tmp_path: Path) -> None:
    asked = ["--model", tiny, "--suite", suite, "--max-tokens", 2, "--dtype", "bfloat16"]

    result = run(*asked, "-o", tmp_path / "all.jsonl", "--json")

    assert json.loads(result.stdout)["header"]["dtype"] == "bfloat16"


def test_code_in_a_tokenizer_is_not_run(tiny: Path, suite: Path, tmp_path: Path) -> None:
    proof = tmp_path / "run"
    (tiny / "evil.py").write_text(f"open({str(proof)!r}, 'w').close()\n", encoding="utf-8")
    config = json.loads((tiny / "tokenizer_config.json").read_text(encoding="utf-8"))
    config |= {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    (tiny / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")

    result = run("--model", tiny, "--suite", suite, "--max-tokens", 2, "-o", tmp_path / "all.jsonl")

    assert not proof.exists()
    assert "Traceback" not in result.output


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    "break_it",
    [
        lambda directory: cut(directory / "model.safetensors"),
        lambda directory: (directory / "tokenizer.json").write_text("{}"),
        lambda directory: (directory / "config.json").write_text('{"model_type": "nothing_known"}'),
        lambda directory: (directory / "config.json").write_text('{"model_type": "llama"}'),
    ],
    ids=["cut weights", "empty tokenizer", "unknown architecture", "no sizes"],
)
def test_a_broken_checkpoint_is_refused_in_one_line(tiny: Path, break_it: Callable[[Path], Any]) -> None:
    break_it(tiny)

    with pytest.raises(EngineError, match=r"tiny: mlx-lm cannot load it \(") as caught:
        checkpoints.open_engine(str(tiny), None)

    assert "\n" not in str(caught.value)
