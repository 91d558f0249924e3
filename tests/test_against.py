"""`simulate --against`: the engine's counters and rate beside the simulated ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import assume, given
from hypothesis import strategies as st

import policies
from calibration import Costs
from policies import LookupPolicy
from simulator import cli, run
from simulator.against import asked_rounds, compare
from tests import strategies
from tests.mlxcel_logs import engine_counters, log_text, write
from traces import Request
from traces.mlxcel_log import LoggedRun

EDIT = Request.of("edit", [*range(100, 140)], [*range(100, 130), 7, 8, 9], "stop")
STORY = Request.of("story", [1, 2, 3], [*range(200, 230)], "length")
LAST_ALONE = Request.of("pair", [1, 2, 3], [10, 11], "length")


def lookup(text: str) -> LookupPolicy:
    policy = policies.load(text)
    assert isinstance(policy, LookupPolicy)
    return policy


GATED = lookup("gated")
COUNTERS = {"rounds": 10, "drafted_rounds": 5, "paused_rounds": 0, "proposed": 30, "accepted": 24}


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(cli.simulate, arguments, prog_name="simulate")


def document(*arguments: str) -> Any:
    done = simulate(*arguments, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a trace of two requests and go where it is."""
    monkeypatch.chdir(tmp_path)
    header = {"format": "breakeven-trace/1", "model": "m"}
    requests = [
        {"id": one.id, "prompt": one.prompt.tolist(), "reply": one.reply.tolist(), "finish": one.finish}
        for one in (EDIT, STORY)
    ]
    return write(Path("two.jsonl"), "".join(json.dumps(line) + "\n" for line in (header, *requests)))


@given(
    strategies.requests(),
    st.sampled_from(["gated", "graded", "fixed", "gated:max_draft=3", "graded:ngram_min=1"]),
    strategies.machines(),
    st.booleans(),
)
def test_every_counter_equals_what_the_engine_s_drafter_counts(
    request: Request, policy: str, costs: Costs, sync: bool
) -> None:
    assume(request.finish != "guard" and request.eligible)
    counters = engine_counters(request, lookup(policy), pipelined=request.pipelinable and not sync)
    logged = LoggedRun("r", "r.log", 1, request.prompt, request.reply, counters, None)

    comparison = compare(run(request, lookup(policy), costs, sync=sync), logged)

    assert comparison.differences == {}


def test_the_forward_that_nobody_was_asked_about_is_no_round_of_the_engine() -> None:
    costs = Costs("any", range(1, 99), dict.fromkeys(range(1, 9), 0.01))
    pair = run(LAST_ALONE, GATED, costs)
    story = run(STORY, GATED, costs)

    assert (pair.schedule.codes, pair.schedule.rounds, asked_rounds(pair)) == ("S", 1, 0)
    assert story.schedule.codes.endswith("P R")
    assert asked_rounds(story) == story.schedule.rounds == 29


def test_a_log_of_the_same_loop_is_equal_in_every_counter(trace: str) -> None:
    log = write(Path("edit.log"), log_text(EDIT, engine_counters(EDIT, GATED), seconds=0.11))

    edit, story = document("--policy", "gated", "--trace", trace, "--against", log)["requests"]

    assert edit["against"] == {
        "file": "edit.log",
        "counters": {**COUNTERS, "shadow_confirmations": 0},
        "equal": True,
        "differences": {},
        "tokens_per_s": 300.0,
        "ratio": edit["tokens_per_s"] / 300.0,
    }
    assert "against" not in story


def test_a_wrong_counter_is_named_with_both_values(trace: str) -> None:
    wrong = engine_counters(EDIT, GATED) | {"proposed": 31, "rounds": 11}
    log = write(Path("edit.log"), log_text(EDIT, wrong))

    against = document("--policy", "gated", "--trace", trace, "--against", log)["requests"][0]["against"]

    assert against["equal"] is False
    assert against["differences"] == {"rounds": [10, 11], "proposed": [30, 31]}


def test_a_build_before_shadow_probes_is_compared_in_the_counters_it_has(trace: str) -> None:
    log = write(Path("edit.log"), log_text(EDIT, COUNTERS))

    done = simulate("--policy", "gated", "--trace", trace, "--against", log)

    assert "\ngated against edit.log:1 (request edit): all 5 counters equal\n" in done.stdout


def test_a_run_without_lookup_stands_beside_plain_decoding(trace: str) -> None:
    log = write(Path("story.log"), log_text(STORY, seconds=0.2))

    story = document("--policy", "gated", "--trace", trace, "--against", log)["requests"][1]

    assert story["against"] == {
        "file": "story.log",
        "counters": {},
        "equal": None,
        "differences": {},
        "tokens_per_s": 150.0,
        "ratio": story["plain_tokens_per_s"] / 150.0,
    }


REPORT = """\
gated against both.log:1 (request edit): 2 of 6 counters differ
          engine  simulated  ratio
rounds        11         10
proposed      31         30
tokens/s   300.0      278.8  0.929

plain decoding against both.log:9 (request story)
          engine  simulated  ratio
tokens/s   150.0      198.1  1.321

graded against both.log:1 (request edit): 4 of 6 counters differ
                engine  simulated  ratio
rounds              11          9
drafted_rounds       5          4
proposed            31         28
accepted            24         25
tokens/s         300.0      301.9  1.006

gated: 1.20 times plain decoding; 20 % faster
graded: 1.24 times plain decoding; 24 % faster
"""


def test_the_report_shows_what_differs_and_the_rates_before_the_answer(trace: str) -> None:
    wrong = engine_counters(EDIT, GATED) | {"proposed": 31, "rounds": 11}
    log = write(Path("both.log"), log_text(EDIT, wrong, seconds=0.11) + log_text(STORY, seconds=0.2))

    done = simulate("--policy", "gated", "--policy", "graded", "--trace", trace, "--against", log)

    assert done.stdout.endswith("\n\n" + REPORT)


def test_a_log_without_a_rate_has_no_ratio(trace: str) -> None:
    text = log_text(EDIT, COUNTERS)
    log = write(Path("edit.log"), "".join(line for line in text.splitlines(True) if "tok/s" not in line))

    against = document("--policy", "gated", "--trace", trace, "--against", log)["requests"][0]["against"]

    assert (against["tokens_per_s"], against["ratio"]) == (None, None)
    assert "\ntokens/s" in simulate("--policy", "gated", "--trace", trace, "--against", log).stdout


def test_a_log_that_no_request_matches_is_refused(trace: str) -> None:
    log = write(Path("pair.log"), log_text(EDIT) + log_text(LAST_ALONE))

    done = simulate("--policy", "gated", "--trace", trace, "--against", log)

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "pair.log:7: no request has this prompt and reply (got 3 and 2 tokens); record --from mlxcel-log makes one\n"
    )


def test_of_two_runs_alike_the_one_of_the_request_s_id_is_meant(trace: str) -> None:
    logs = [write(Path(name), log_text(EDIT, COUNTERS)) for name in ("edit.log", "again.log")]
    arguments = ("--policy", "gated", "--trace", trace, "--against", logs[0])

    unused = simulate(*arguments, "--against", logs[1])
    Path("edit.log").rename("third.log")
    neither = simulate(*arguments[:-1], "third.log", "--against", logs[1])

    assert (unused.exit_code, unused.stdout) == (1, "")
    assert unused.stderr == "again.log:1: has the prompt and reply of edit.log:1 too; give one of them\n"
    assert (neither.exit_code, neither.stdout) == (1, "")
    assert neither.stderr == (
        "again.log:1: has the prompt and reply of third.log:1 too, and request 'edit' has the id of neither "
        "(got 'third', 'again'); give one of them\n"
    )


def test_the_trace_of_a_log_matches_it(trace: str) -> None:
    log = write(Path("edit.log"), log_text(EDIT, engine_counters(EDIT, GATED)))
    made = LoggedRun("edit", log, 1, EDIT.prompt, EDIT.reply, None, None).request()

    assert made == EDIT
