"""`record --from` as a user sees it, and the tokenizers that it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import traces
from calibration import cli
from calibration.engine import EngineError
from calibration.importing import SOURCES
from calibration.local_tokenizer import LocalTokenizer
from tests import tiny_checkpoint
from tests.imported_files import write
from tests.trace_lines import refusal
from traces.importing.text_tokens import Message

TALK = [{"id": "x", "conversations": [{"from": "human", "value": "the"}, {"from": "gpt", "value": "then"}]}]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    pytest.importorskip("transformers", reason="transformers is not installed", exc_type=ImportError)
    return tiny_checkpoint.make(tmp_path / "tiny")


def record(*arguments: object) -> Result:
    return CliRunner().invoke(cli.record, [str(argument) for argument in arguments], prog_name="record")


def test_a_file_of_ids_becomes_a_trace(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.jsonl", '{"prompt": [1, 2], "response": [3]}\n{"prompt": [1], "response": []}\n')
    where = tmp_path / "out.jsonl"

    done = record("--from", "pairs", file, "--model", "Mine-7B", "--max-tokens", 40, "-o", where)

    assert (done.exit_code, done.stderr) == (
        0,
        "mine-2: not kept, since the model ended its reply before the first token\n",
    )
    assert done.stdout == (
        "model    Mine-7B\n"
        "from     pairs mine.jsonl\n"
        f"mine-1       1 tokens after     2, stop    {where}\n"
        "kept     1 reply with 1 token in 1 trace\n"
    )
    trace = traces.load(where)
    assert trace.header == {
        "format": "breakeven-trace/1",
        "model": "Mine-7B",
        "source": "pairs",
        "files": ["mine.jsonl"],
    }
    assert [one.max_tokens for one in trace.requests] == [40]


def test_a_wrong_line_leaves_no_trace(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.jsonl", '{"prompt": [1, 2], "response": [3]}\n{}\n')
    where = tmp_path / "out.jsonl"

    done = record("--from", "pairs", file, "--model", "m", "-o", where)

    assert (done.exit_code, done.stdout, where.exists()) == (1, "", False)
    assert done.stderr == f"{file}:2: must have 'prompt' (got no keys)\n"


def test_arrivals_go_to_the_requests_of_a_trace(tmp_path: Path) -> None:
    said = write(
        tmp_path / "said.jsonl",
        '{"format": "breakeven-trace/1", "model": "m", "dtype": "q4"}\n'
        '{"id": "a", "prompt": [1], "reply": [2, 3], "finish": "length"}\n',
    )
    file = write(tmp_path / "mooncake.jsonl", '{"timestamp": 1000}\n{"timestamp": 1250}\n')
    where = tmp_path / "timed.jsonl"

    done = record("--from", "mooncake", file, "--trace", said, "-o", where)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["model    m", "from     mooncake mooncake.jsonl"]
    trace = traces.load(where)
    assert trace.header == {
        "format": "breakeven-trace/1",
        "model": "m",
        "dtype": "q4",
        "arrivals": {"source": "mooncake", "files": ["mooncake.jsonl"]},
    }
    assert [(one.id, one.arrival_s, one.finish) for one in trace.requests] == [
        ("a", 0.0, "length"),
        ("a-2", 0.25, "length"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "pairs", "f"), "Missing option '--model'"),
        (("--from", "azure", "f"), "Missing option '--trace'"),
        ((), "Missing option '--model'"),
        (("--from", "azure", "f", "--trace", "t", "--model", "m"), "--model does not go with --from azure"),
        (("--from", "sharegpt", "f", "--model", "m", "--trace", "t"), "--trace does not go with --from sharegpt"),
        (
            ("--from", "sharegpt", "f", "--model", "m", "--columns", "a", "b"),
            "--columns does not go with --from sharegpt",
        ),
        (
            ("--from", "mlxcel-log", "f", "--model", "m", "--tokenizer", "t"),
            "--tokenizer does not go with --from mlxcel-log",
        ),
        (
            ("--from", "pairs", "f", "--model", "m", "--dtype", "q4"),
            "--dtype is for asking a model, which --from pairs is not",
        ),
        (("--model", "m", "--columns", "a", "b"), "--columns needs --from pairs|arctic-inference"),
        (("--model", "m", "--trace", "t"), "--trace needs --from mooncake|azure"),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_command_line(arguments: tuple[str, ...], message: str) -> None:
    done = record(*arguments, "-o", "out.jsonl")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"record: {message}; see record --help\n"


def test_the_help_names_every_format() -> None:
    said = " ".join(record("--help").stdout.split())

    assert "Read files instead of asking a model: " + ", ".join(SOURCES).replace("mlxcel-log", "mlxcel- log") in said


def test_text_is_read_with_a_local_tokenizer(tiny: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "talks.json", json.dumps(TALK))
    where = tmp_path / "out.jsonl"

    command = [sys.executable, "-c", "from calibration.cli import record; record(prog_name='record')"]
    options = ["--from", "sharegpt", file, "--model", "m", "--tokenizer", str(tiny), "-o", str(where)]
    done = subprocess.run([*command, *options], capture_output=True, encoding="utf-8", check=False)

    assert (done.returncode, done.stderr) == (0, "")
    trace = traces.load(where)
    assert {"tokenizer", "tokenizer_sha256"} <= trace.header.keys()
    tokenizer = LocalTokenizer(str(tiny))
    [one] = trace.requests
    assert one.prompt.tolist() == tokenizer.chat([Message("user", "the")])
    assert (one.reply.tolist(), one.text, one.finish) == (tokenizer.reply("then"), "then", "stop")


def test_a_local_tokenizer_knows_its_chat_form_and_its_ends(tiny: Path) -> None:
    (tiny / "generation_config.json").write_text('{"eos_token_id": [2, 7]}', "utf-8")
    tokenizer = LocalTokenizer(str(tiny))
    messages = [Message("user", "the"), Message("assistant", "x"), Message("user", "y")]

    form = "<|im_start|>user\nthe<|im_end|><|im_start|>assistant\nx<|im_end|><|im_start|>user\ny<|im_end|>"
    assert tokenizer.chat(messages) == tokenizer.bare(f"{form}<|im_start|>assistant\n")
    assert tokenizer.ends == {2, 7}
    assert tokenizer.reply("the") == tokenizer.bare("the")


def test_a_tokenizer_without_a_chat_form_gets_the_bare_text(tiny: Path) -> None:
    config = json.loads((tiny / "tokenizer_config.json").read_text("utf-8"))
    del config["chat_template"]
    (tiny / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    tokenizer = LocalTokenizer(str(tiny))

    assert tokenizer.chat([Message("user", "the")]) == tokenizer.bare("the")


def test_a_chat_form_that_refuses_is_told(tiny: Path) -> None:
    config = json.loads((tiny / "tokenizer_config.json").read_text("utf-8"))
    config["chat_template"] = "{{ raise_exception('roles must alternate') }}"
    (tiny / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    tokenizer = LocalTokenizer(str(tiny))

    assert refusal(lambda: tokenizer.chat([Message("user", "the")])) == (
        "the model's chat form has no place for this (roles must alternate)"
    )


def test_a_directory_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"^--tokenizer: no such directory \(got '/no/such'\)$"):
        LocalTokenizer("/no/such")
    pytest.importorskip("transformers", reason="transformers is not installed", exc_type=ImportError)
    with pytest.raises(EngineError, match="not a tokenizer that can be loaded \\(") as caught:
        LocalTokenizer(str(tmp_path))
    assert "\n" not in str(caught.value)
