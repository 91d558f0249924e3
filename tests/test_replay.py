"""`replay` as a user sees it, on a tiny random llama that the tests make themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click.testing
import pytest

import policies
import traces
from calibration import checkpoints, this_machine
from calibration.engine import Sampler
from calibration.recording import record
from calibration.suites import Prompt
from simulator import settings_file
from simulator.replay.cli import replay
from simulator.replay.store import Store
from tests import random_checkpoints

pytestmark = pytest.mark.mlx


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model, a trace of what it says and a profile of this machine."""
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("replay")
    model = random_checkpoints.make(folder / "tiny")
    engine = checkpoints.open_engine(str(model), None)
    sampler = Sampler()
    prompts = [Prompt(name, f"{name} prompt", max_tokens=24) for name in ("first", "second")]
    said = [request for one in prompts if (request := record(engine, one, sampler))]
    traces.write(folder / "said.jsonl", engine.provenance() | {"sampler": sampler.provenance()}, said)
    widths = list(range(1, 9))
    (folder / "p.yaml").write_text(
        f"""\
format: breakeven-profile/1
name: tiny-here
machine: {{chip: {json.dumps(this_machine.machine().chip)}}}
engine: mlx
model: tiny
dtype: float32
measured: unknown
source: made up
bound: device
cost:
  contexts: [16]
  used_for: [1, 512]
  widths: {widths}
  pipelined_s: [0.001]
  sync_s: {[[0.001 + 0.0001 * width] for width in widths]}
prefill: {{fixed_s: 0.0, per_token_s: 0.0001, source: made up}}
""",
        encoding="utf-8",
    )
    return folder


def run(folder: Path, *arguments: object) -> click.testing.Result:
    fixed = ["--model", folder / "tiny", "--trace", folder / "said.jsonl", "--profile", folder / "p.yaml"]
    return click.testing.CliRunner().invoke(replay, [str(argument) for argument in (*fixed, *arguments)])


def test_forced_counters_are_those_of_the_simulation(tiny: Path) -> None:
    result = run(tiny, "--policy", "gated", "--policy", "fixed:ngram_min=1", "--rounds", 2, "--json")

    assert (result.exit_code, result.stderr) == (0, "")
    runs = json.loads(result.stdout)["runs"]
    records = [one for found in runs for one in found["requests"]]
    assert len(records) == 4
    for one in records:
        assert one["counters_equal"]
        assert one["parity"] is None
        assert one["measured"]["repeats"] == 2
        assert one["measured"]["decode_s"]["median"] > 0
        assert sum(kind["measured_s"] for kind in one["by_kind"]) == pytest.approx(
            one["measured"]["decode_s"]["median"], rel=1e-9
        )


def test_a_free_reply_is_plain_decodings(tiny: Path) -> None:
    result = run(tiny, "--policy", "fixed:ngram_min=1", "--mode", "free", "--rounds", 1, "--json")

    assert (result.exit_code, result.stderr) == (0, "")
    records = json.loads(result.stdout)["requests"]
    assert [one["parity"] for one in records] == [{"verdict": "same"}] * 2
    assert [one["recording"] for one in records] == [{"verdict": "same"}] * 2
    assert all(one["counters_equal"] for one in records)


def test_drawn_tokens_are_drawn_again_whatever_the_widths(tiny: Path, tmp_path: Path) -> None:
    engine = checkpoints.open_engine(str(tiny / "tiny"), None)
    warm = Sampler(temperature=0.3, seed=5)
    said = record(engine, Prompt("warm", "first prompt first prompt", max_tokens=60), warm)
    assert said
    traces.write(tmp_path / "warm.jsonl", engine.provenance() | {"sampler": warm.provenance()}, [said])

    found = ("--trace", tmp_path / "warm.jsonl", "--policy", "fixed:ngram_min=1", "--mode", "free", "--json")
    result = run(tiny, *found, "--rounds", 1)

    assert (result.exit_code, result.stderr) == (0, "")
    one = json.loads(result.stdout)["requests"][0]
    assert one["parity"] == {"verdict": "same"}
    assert one["recording"] == {"verdict": "same"}
    assert one["drafted_rounds"] > 0


def test_the_report_ends_with_the_answer_and_can_be_rebuilt_from_what_was_saved(tiny: Path, tmp_path: Path) -> None:
    first = run(tiny, "--policy", "gated", "--rounds", 2, "--save", tmp_path / "kept", "--tokens", 9)
    again = run(tiny, "--policy", "gated", "--rounds", 2, "--save", tmp_path / "kept", "--tokens", 9)

    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert first.stdout.splitlines()[-1].startswith("gated: ")
    assert "the prediction is off by" in first.stdout.splitlines()[-1]
    profile, note, *_ = first.stdout.splitlines()
    assert profile.startswith("profile  tiny-here: tiny float32 on ")
    assert note.strip().startswith("measured at context 16")
    assert "2 requests, forced, 18 recorded tokens, 2 repeats; step times are medians over them" in first.stdout


def test_what_was_saved_belongs_to_a_trace_wherever_it_lies(tiny: Path, tmp_path: Path) -> None:
    asked = ("--policy", "gated", "--rounds", 1, "--save", tmp_path / "kept", "--tokens", 9)
    first = run(tiny, *asked)
    shutil.copy(tiny / "said.jsonl", tmp_path / "elsewhere.jsonl")

    again = run(tiny, *asked, "--trace", tmp_path / "elsewhere.jsonl")

    assert first.exit_code == again.exit_code == 0
    assert again.stdout == first.stdout.replace(str(tiny / "said.jsonl"), str(tmp_path / "elsewhere.jsonl"))


def test_what_was_saved_is_held_against_the_profile_too(tiny: Path, tmp_path: Path) -> None:
    text = (tiny / "p.yaml").read_text().replace("chip: ", 'chip: "Other" #').replace("machine: {", "machine:\n  ")
    (tmp_path / "p.yaml").write_text(text)
    asked = ("--policy", "gated", "--rounds", 1, "--save", tmp_path / "kept", "--profile", tmp_path / "p.yaml")
    words = "the profile is of another machine than the engine's ('Other' and "

    allowed = run(tiny, *asked, "--allow-mismatch", "--json")
    refused = run(tiny, *asked)

    assert (allowed.exit_code, refused.exit_code) == (0, 1)
    assert json.loads(allowed.stdout)["notes"][-1].startswith(words)
    assert refused.stderr.startswith(words)


def test_a_request_named_twice_is_replayed_once(tiny: Path) -> None:
    result = run(tiny, "--policy", "gated", "--rounds", 1, "--request", "first", "--request", "first", "--json")

    assert [one["id"] for one in json.loads(result.stdout)["requests"]] == ["first"]


def test_what_was_measured_before_the_memory_ran_out_is_reported(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep, count = Store.keep, 0

    def full(store: Store, *args: Any) -> None:
        nonlocal count
        count += 1
        if count > 3:  # the first request is whole
            raise MemoryError
        keep(store, *args)

    monkeypatch.setattr(Store, "keep", full)
    result = run(tiny, "--policy", "gated", "--rounds", 1, "--json")

    assert result.exit_code == 1
    assert result.stderr.startswith("out of memory; ")
    assert result.stderr.endswith(": 3 runs are missing\n")
    document = json.loads(result.stdout)
    assert [one["id"] for one in document["requests"]] == ["first"]
    assert (document["missing_runs"], document["defects"]) == (3, [])


def test_other_samples_beside_a_profile_give_no_interval(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text((tiny / "p.yaml").read_text() + "provenance: {samples: p.samples.json}\n")
    cells = [
        {"kind": kind, "width": width, "context": 16, "seconds": [0.002]}
        for kind, width in (("pipelined", 1), *(("sync", width) for width in range(1, 9)))
    ]
    (tmp_path / "p.samples.json").write_text(json.dumps({"format": "breakeven-samples/1", "cells": cells}))

    result = run(tiny, "--policy", "gated", "--rounds", 1, "--profile", tmp_path / "p.yaml")

    assert result.exit_code == 0
    assert result.stderr == (
        f"{tmp_path}/p.samples.json: holds other samples than profile 'tiny-here' came of; no interval of its "
        "prediction\n"
    )


def test_settings_from_a_file_are_a_policy_like_any_other(tiny: Path, tmp_path: Path) -> None:
    policy = policies.load("gated:narrow=1,full_at=0.5")
    (tmp_path / "found.yaml").write_text(settings_file.dump(policy, {}))

    result = run(tiny, "--settings", tmp_path / "found.yaml", "--rounds", 1, "--json")

    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["policy"] == {"name": "gated", "settings": policy.settings}


def test_a_prediction_that_is_off_exits_3(tiny: Path) -> None:
    result = run(tiny, "--policy", "fixed:ngram_min=1", "--rounds", 1, "--within", "0.0001%")

    assert result.exit_code == 3
    assert "more than --within allows" in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "other"}, "the trace is of another model than the engine's ('other' and 'tiny')"),
        ({"tokenizer_sha256": "x"}, "the trace is of another tokenizer than the engine's"),
        ({"weights_sha256": "x"}, "the trace is of other weights than the engine's, of the same name and dtype"),
    ],
)
def test_a_trace_of_another_model_is_refused(tiny: Path, tmp_path: Path, change: dict[str, str], words: str) -> None:
    trace = traces.load(str(tiny / "said.jsonl"))
    traces.write(tmp_path / "other.jsonl", {**trace.header, **change}, trace.requests)

    refused = run(tiny, "--policy", "gated", "--trace", tmp_path / "other.jsonl", "--rounds", 1)
    allowed = run(tiny, "--policy", "gated", "--trace", tmp_path / "other.jsonl", "--rounds", 1, "--allow-mismatch")

    assert refused.exit_code == 1
    assert refused.stderr.startswith(words)
    assert allowed.exit_code == 0
    assert allowed.stderr.startswith(words)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("chip: ", 'chip: "Other" #', "the profile is of another machine than the engine's ('Other' and "),
        ("model: tiny", "model: huge", "the profile is of another model than the engine's ('huge' and 'tiny')"),
        ("dtype: float32", "dtype: q4", "the profile is of another dtype than the engine's ('q4' and 'float32')"),
        ("  chip: ", "  cores: 1000\n  chip: ", "the profile is of another machine than the engine's (1000 cores and "),
        (
            "prefill: ",
            "provenance:\n  tokenizer_sha256: other\nprefill: ",
            "the profile is of another tokenizer than the engine's ('other' and ",
        ),
        (
            "prefill: ",
            "provenance:\n  device: a GPU\nprefill: ",
            "the profile is of another device than the engine's ('a GPU' and ",
        ),
    ],
)
def test_a_profile_of_another_machine_is_refused(
    tiny: Path, tmp_path: Path, before: str, after: str, words: str
) -> None:
    text = (tiny / "p.yaml").read_text().replace("machine: {", "machine:\n  ").replace('"}\nengine', '"\nengine')
    (tmp_path / "p.yaml").write_text(text.replace(before, after))

    for mode in ("forced", "free"):
        if mode == "free" or "dtype" not in before:
            result = run(tiny, "--policy", "gated", "--profile", tmp_path / "p.yaml", "--mode", mode)

            assert result.exit_code == 1
            assert result.stderr.startswith(words)
            assert result.stderr.endswith("; --allow-mismatch replays it anyway\n")


def test_what_forced_replay_does_not_mind_is_noted(tiny: Path, tmp_path: Path) -> None:
    text = (tiny / "p.yaml").read_text().replace("dtype: float32", "dtype: q4")
    (tmp_path / "p.yaml").write_text(f"{text}provenance: {{blas: libother.so}}\n")

    result = run(tiny, "--policy", "gated", "--profile", tmp_path / "p.yaml", "--rounds", 1)

    assert result.exit_code == 0
    dtype, blas = result.stderr.splitlines()
    assert dtype == "the profile is of another dtype than the engine's ('q4' and 'float32')"
    assert blas.startswith("the profile was measured with another BLAS (libother.so, now ")


def test_a_trace_that_the_model_is_too_short_for_is_refused(tiny: Path, tmp_path: Path) -> None:
    trace = traces.load(str(tiny / "said.jsonl"))
    long = traces.Request.of(id="long", prompt=[5] * 500, reply=[6] * 9, finish="length")
    traces.write(tmp_path / "long.jsonl", trace.header, [long])

    result = run(tiny, "--policy", "gated", "--trace", tmp_path / "long.jsonl")

    assert result.exit_code == 1
    assert result.stderr == "the model was made for contexts of up to 512 positions (this run needs 517)\n"


def test_a_token_that_the_model_does_not_know_is_refused(tiny: Path, tmp_path: Path) -> None:
    trace = traces.load(str(tiny / "said.jsonl"))
    odd = traces.Request.of(id="odd", prompt=[5], reply=[300], finish="length")
    traces.write(tmp_path / "odd.jsonl", trace.header, [odd])

    result = run(tiny, "--policy", "gated", "--trace", tmp_path / "odd.jsonl")

    assert result.exit_code == 1
    assert result.stderr == (
        "request 'odd': holds token 300, and the model knows 256; the trace is of another tokenizer\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--request", "third"), "no request 'third' (have: first, second)"),
        (("--model", "nowhere"), "no model named 'nowhere', nor such a directory (named: smollm2)"),
        (("--policy", "oracle"), "oracle knows the reply, so no engine can follow it; simulate gives its bound"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(tiny: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run(tiny, "--policy", "gated", *arguments)

    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_width_outside_the_grid_is_refused_before_anything_runs(tiny: Path, tmp_path: Path) -> None:
    text = (tiny / "p.yaml").read_text().replace("widths: [1, 2, 3, 4, 5, 6, 7, 8]", "widths: [1]")
    rows = text.index("sync_s: ")
    (tmp_path / "p.yaml").write_text(f"{text[:rows]}sync_s: [[0.0011]]\n{text[text.index('prefill') :]}")

    result = run(tiny, "--policy", "fixed:ngram_min=1", "--profile", tmp_path / "p.yaml", "--model", "nowhere")

    assert result.exit_code == 1
    assert result.stderr.startswith("request 'first' under fixed:ngram_min=1: width ")
    assert result.stderr.endswith(" is not in profile tiny-here (widths: 1)\n")
