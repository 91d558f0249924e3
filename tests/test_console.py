"""What every command does when the world around it misbehaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calibration.progress import counted, shown
from calibration.suites import Prompt

SIMULATE = (sys.executable, "-c", "from simulator.cli import simulate; simulate(prog_name='simulate')")
STORY = ("--policy", "gated", "--trace", "story")


def simulate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    settings = {**os.environ, **environment}
    return subprocess.run([*SIMULATE, *arguments], capture_output=True, env=settings, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize("arguments", [STORY, (*STORY, "--json"), ("--help",), ("--version",)])
def test_a_full_disk_is_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*SIMULATE, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 1
    assert done.stderr.decode().startswith("stdout: cannot be ")
    assert done.stderr.count(b"\n") == 1


def test_a_closed_stdout_is_one_line() -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", *SIMULATE, *STORY]

    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (1, b"stdout: cannot be written (it is closed)\n")


@pytest.mark.parametrize("arguments", [STORY, ("--help",)])
def test_an_encoding_that_lacks_a_letter_shows_an_escape(arguments: tuple[str, ...]) -> None:
    done = simulate(*arguments, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 on this machine")
def test_a_document_is_ascii_whatever_the_encoding_and_the_name(tmp_path: Path) -> None:
    trace = tmp_path / "é\udcff.jsonl"
    trace.write_bytes(
        b'{"format": "breakeven-trace/1", "model": "m"}\n{"id": "r", "prompt": [1], "reply": [2], "finish": "stop"}\n'
    )

    done = simulate("--policy", "gated", "--trace", str(trace), "--json", PYTHONIOENCODING="latin-1")

    assert json.loads(done.stdout.decode("ascii"))["trace"] == str(trace)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "a" * 300), f"{'a' * 300}: cannot be used (File name too long)\n"),
        ((*STORY, "ex\ntra"), "simulate: Got unexpected extra argument (ex\\ntra); see simulate --help\n"),
        (("--profile", "no/\x1b[31mred"), "no/\\x1b[31mred: there is no such file (shipped profiles: "),
    ],
)
def test_a_message_is_one_line_without_control_characters(arguments: tuple[str, ...], message: str) -> None:
    done = simulate(*STORY, *arguments)

    assert done.returncode in (1, 2)
    assert done.stderr.decode().startswith(message)
    assert done.stderr.count(b"\n") == 1


def test_names_out_of_a_trace_cannot_break_the_report(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    lines = [
        {"format": "breakeven-trace/1", "model": "m\n\x1b[31m"},
        {"id": "a\nb", "prompt": [1], "reply": [2], "finish": "stop"},
    ]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))

    done = simulate("--policy", "gated", "--trace", str(trace), "--events")

    assert b"\x1b" not in done.stdout
    assert b"1 request of m\\n\\x1b[31m\n" in done.stdout
    assert b"a\\nb " in done.stdout


def test_a_file_does_not_stand_in_for_the_default_profile(tmp_path: Path) -> None:
    (tmp_path / "gb10-qwen3-1.7b-4bit").write_text("no profile")
    command = [*SIMULATE, *STORY]

    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)

    assert done.returncode == 0
    assert done.stdout.startswith(b"profile  gb10-qwen3-1.7b-4bit (the default): Qwen3-1.7B")


def test_a_folder_does_not_stand_in_for_a_shipped_trace(tmp_path: Path) -> None:
    (tmp_path / "story").mkdir()

    done = subprocess.run([*SIMULATE, *STORY], capture_output=True, cwd=tmp_path, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_synchronous_run_says_so() -> None:
    done = simulate(*STORY, "--sync")

    assert b"the policy's run is never pipelined (--sync)\n" in done.stdout


def test_nobody_has_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    with counted(3, "measuring") as done:
        done("first")
    assert [one.id for one in shown([Prompt("first", "said", max_tokens=1)])] == ["first"]
