"""The `tune` command as a user sees it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import policies
from simulator import settings_file
from simulator.cli import simulate
from tests.tuning_requests import requests, write
from tuning.cli import SAMPLERS, tune
from tuning.samplers import NAMES
from tuning.worker import Work
from tuning.workers import Done, work_together

FAST = ("--trials", "12", "--workers", "1", "--floor", "0.9")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "said.jsonl", requests(3), requests(4, held_out=True))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(tune, [str(one) for one in arguments])


def test_the_report_ends_with_the_answer_and_a_second_call_repeats_it(trace: str) -> None:
    first = run("--policy", "gated", "--trace", trace, *FAST)
    again = run("--policy", "gated", "--trace", trace, *FAST)

    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == again.stdout
    lines = first.stdout.splitlines()
    assert lines[-1].startswith("gated: ")
    assert any(line.split()[:1] == ["tuning"] and line.split()[1:3] == ["6", "1.000"] for line in lines)
    assert "split    6 requests for tuning, 8 held out, by the tag 'held-out'" in lines
    assert Path("tune.journal").exists()


def test_what_was_found_is_a_file_that_simulate_takes(trace: str) -> None:
    done = run("--policy", "gated", "--trace", trace, *FAST, "-o", "found.yaml", "--json")
    document = json.loads(done.stdout)

    policy = settings_file.load("found.yaml")
    simulated = CliRunner().invoke(simulate, ["--settings", "found.yaml", "--trace", trace, "--json"])

    assert document["found"] == policy.settings
    assert json.loads(simulated.stdout)["policy"]["settings"] == policy.settings
    assert run("--policy", "gated", "--trace", trace, *FAST, "-o", "found.yaml").stderr == (
        "found.yaml: is there already; --force overwrites it\n"
    )


def test_what_is_held_out_changes_nothing_about_the_search(tmp_path: Path, trace: str) -> None:
    other = write(tmp_path / "other.jsonl", requests(3), requests(4, held_out=True, seed=1000))

    one, two = (
        json.loads(run("--policy", "gated", "--trace", where, *FAST, "--json").stdout) for where in (trace, other)
    )

    assert one["study"]["name"] != two["study"]["name"]
    assert one["held_out"] != two["held_out"]
    for part in ("trials", "found", "constants", "tuning"):
        assert one[part] == two[part]


def test_the_document_has_the_bounds_the_effect_and_every_trial(trace: str) -> None:
    document = json.loads(run("--policy", "gated", "--trace", trace, *FAST, "--json").stdout)

    (machine,) = document["profiles"]
    assert [one["number"] for one in document["trials"]] == list(range(12))
    for part in ("tuning", "held_out"):
        speedup = document[part][machine]["speedup"]
        assert speedup["plain"] == 1.0
        assert speedup["oracle"] >= speedup["shipped"]
    effect = document["held_out"]["effect"]
    assert effect["low"] <= effect["ratio"] <= effect["high"]
    assert document["recommended"] is (effect["low"] > 1 and bool(document["changes"]))
    assert set(document["split"]["held_out"]) == {one.id for one in requests(4, held_out=True)}
    assert document["evidence"]["digests"].count(",") == 4


def test_settings_that_gain_nothing_held_out_are_not_recommended(tmp_path: Path, trace: str) -> None:
    # What is held out is copied faithfully and was shipped for; what is tuned on is not.
    few = write(tmp_path / "few.jsonl", requests(3), requests(1, held_out=True))

    done = run("--policy", "gated", "--trace", few, *FAST)

    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith("gated: keep the shipped constants; ")


def test_changed_constants_are_written_as_rust(trace: str) -> None:
    fixed = [
        f"--fix={name}={value}" for name, value in policies.load("graded").settings.items() if name != "multiplier"
    ]
    fixed = [one.replace("first_pause=4", "first_pause=9").replace("max_draft=7", "max_draft=6") for one in fixed]

    done = run(
        "--policy",
        "graded",
        "--trace",
        trace,
        *FAST,
        "--floor",
        0,
        "--keep",
        0,
        *fixed,
        "--range=multiplier=2,3",
        "--emit",
        "mlxcel",
    )

    assert done.exit_code == 0
    assert done.stdout.startswith("// Recommended: ")
    block = next(block for block in done.stdout.split("\n\n") if "MIN_COOLDOWN" in block)
    assert block.splitlines()[0].startswith("/// Shipped: 4. Held out: ")
    assert " Derived from: 6 requests for tuning of " in " ".join(block.replace("///", "").split())
    assert block.splitlines()[-1] == "const MIN_COOLDOWN: usize = 9;"
    other = next(block for block in done.stdout.split("\n\n") if "MAX_DRAFT" in block)
    assert other.splitlines()[-2] == "// Not a constant of mlxcel's by this name."


def test_several_profiles_and_weights_are_in_the_table(trace: str) -> None:
    profiles = ("--profile", "gb10-qwen3-1.7b-4bit", "--profile", "gb10-qwen3-8b-4bit")

    done = run("--policy", "graded", "--trace", trace, *FAST, "--floor", 0, *profiles, "--weight", "copy=2")

    assert (done.exit_code, done.stderr) == (0, "")
    assert "copy weighs 2" in done.stdout
    for name in profiles[1::2]:
        assert f"\n{name} " in done.stdout


def test_a_server_is_searched_the_same_way(trace: str) -> None:
    serving = ("--serve", "--parallel", "1", "--kv-storage", "dense")

    done = run("--policy", "gated", "--trace", trace, "--trials", 4, "--workers", 1, "--floor", 0, *serving)

    assert (done.exit_code, done.stderr) == (0, "")
    assert "server   1 slot, proposals in batches of up to 2 rows, dense, arrivals now" in done.stdout
    assert "oracle" not in done.stdout


def test_a_floor_that_nothing_meets_exits_3_and_shows_the_least_bad(trace: str) -> None:
    done = run("--policy", "gated", "--trace", trace, "--trials", 4, "--workers", 1, "--floor", 7)

    assert (done.exit_code, done.stderr) == (3, "")
    assert done.stdout.splitlines()[-1].startswith("gated: no answer; no settings that were tried keep the rules; ")


def test_another_question_under_the_same_study_is_refused(trace: str) -> None:
    first = run("--policy", "gated", "--trace", trace, *FAST, "--study", "mine")
    other = run("--policy", "gated", "--trace", trace, *FAST, "--study", "mine", "--fix", "narrow=2")

    assert first.exit_code == 0
    assert (other.exit_code, other.stdout) == (1, "")
    assert other.stderr.startswith("study mine in tune.journal: the digest of its space is ")


def test_every_seed_and_sampler_has_a_study_of_its_own_unless_it_is_named(trace: str) -> None:
    ask = ("--policy", "gated", "--trace", trace, *FAST)
    found = [run(*ask, *more, "--json") for more in ((), ("--seed", 1), ("--sampler", "random"))]
    studies = [json.loads(one.stdout)["study"] for one in found]
    count = len(json.loads(found[0].stdout)["trials"])

    assert len({one["name"] for one in studies}) == 3
    assert [one["proposed_by"] for one in studies] == [
        {"tpe, seed 0": count},
        {"tpe, seed 1": count},
        {"random, seed 0": count},
    ]

    name = ("--study", studies[0]["name"], "--seed", 1, "--trials", count + 2)
    together = f"{count + 2} trials ({count} by tpe, seed 0; 2 by tpe, seed 1)"
    assert together in run(*ask, *name).stdout


def test_a_grid_is_searched_whole_and_mixed_with_nothing(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.cli.DEFAULT_TRIALS", 3)
    narrow = ("--fix", "match=latest", "--fix", "ngram_min=1", "--range", "ngram_max=1,2,3", "--range", "max_draft=2,7")
    ask = ("--policy", "fixed", *narrow, "--fix", "pipeline_after=2", "--trace", trace, "--workers", 1, "--floor", 0)

    grid = run(*ask, "--sampler", "grid", "--study", "points", "--json")
    points = [tuple(one["parameters"].values()) for one in json.loads(grid.stdout)["trials"]]

    assert len(points) == len(set(points)) == 6
    for other in ((), ("--sampler", "grid", "--seed", 1)):
        mixed = run(*ask, "--study", "points", *other)
        assert mixed.exit_code == 1
        assert "the digest of its objective is one value, points of seed 0 (got one value" in mixed.stderr


def test_the_time_may_be_limited_instead_of_the_trials(trace: str) -> None:
    done = run("--policy", "gated", "--trace", trace, "--timeout", 0.5, "--workers", 1, "--floor", 0, "--json")

    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["trials"]) > 1


def test_ctrl_c_reports_what_is_finished(trace: str) -> None:
    command = [str(Path(sys.executable).with_name("tune")), "--policy", "gated", "--trace", trace, "--floor", "0"]
    process = subprocess.Popen(
        [*command, "--timeout", "100", "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has them ignore Ctrl-C, and a child inherits that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while not Path("tune.journal").exists() or Path("tune.journal").stat().st_size < 20_000:
        assert process.poll() is None
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 1
    assert stdout.splitlines()[-1].startswith("gated: ")
    assert re.fullmatch(r"interrupted: \d+ trials are kept; the same command goes on\n", stderr)


def test_a_search_that_was_interrupted_writes_and_confirms_nothing(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(task: Work, workers: int, done: Done) -> None:
        work_together(task, workers, done)
        raise KeyboardInterrupt

    monkeypatch.setattr("tuning.workers.work_together", interrupted)
    stories = [one for one in (*requests(4), *requests(8, held_out=True)) if "prose" in one.tags]
    said = write(Path("stories.jsonl"), tuple(stories))
    ask = ("--policy", "fixed", "--trace", said, *FAST, "--floor", 0, "-o", "found.yaml")

    confirmed = run(*ask, "--confirm", 1, "--model", "smollm2", "--allow-mismatch")
    alone = run(*ask)

    assert confirmed.exit_code == alone.exit_code == 1
    last = confirmed.stdout.splitlines()[-1]
    assert last.startswith("fixed: no answer; ")
    assert last.endswith("; not confirmed: the search was interrupted")
    assert alone.stderr == "interrupted: 12 trials are kept; the same command goes on\n"
    assert not Path("found.yaml").exists()


def test_a_study_of_two_values_is_chosen_from_like_any_other(trace: str) -> None:
    done = run("--policy", "gated", "--trace", trace, *FAST, "--trials", 25, "--sampler", "nsgaii", "--json")

    document = json.loads(done.stdout)
    assert document["feasible"]
    assert sum(one["importance"] for one in document["constants"]) == pytest.approx(1.0)


def test_a_single_request_cannot_be_split(trace: str) -> None:
    done = run("--policy", "gated", "--trace", "story", *FAST)

    assert done.exit_code == 1
    assert done.stderr.startswith("the held-out split is empty (")


def test_the_help_names_the_samplers_there_are() -> None:
    assert SAMPLERS == NAMES
