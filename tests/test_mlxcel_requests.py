"""Requests out of the reference engine's logs: how each reply ended, and the traces that `record` makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import assume, given
from hypothesis import strategies as st

import policies
import traces
from calibration import cli
from calibration.importing import SOURCES
from policies import LookupPolicy
from tests import strategies
from tests.mlxcel_logs import engine_counters, log_text, write
from tests.trace_lines import refusal
from traces import Request
from traces.mlxcel_log import LoggedRun

A = Request.of("a", [1, 2, 3], [4, 5], "stop")
B = Request.of("b", [6], [7, 8, 9], "stop")
COUNTS = {"rounds": 3, "drafted_rounds": 0, "paused_rounds": 1, "proposed": 0, "accepted": 0}


def lookup(text: str) -> LookupPolicy:
    policy = policies.load(text)
    assert isinstance(policy, LookupPolicy)
    return policy


def record(*arguments: str) -> Result:
    return CliRunner().invoke(cli.record, arguments, prog_name="record")


def logged(counters: dict[str, int] | None = None, reply_tokens: int = 50) -> LoggedRun:
    ids = Request.of("r", [1], [*range(reply_tokens)], "stop")
    return LoggedRun("r", "run.log", 7, ids.prompt, ids.reply, counters, None)


def spare(forwards: int) -> dict[str, int]:
    """Return counters of forwards that led nowhere, of a reply of 50 tokens; the engine's last may be missing."""
    return COUNTS | {"rounds": 29 + forwards, "accepted": 20}


@pytest.mark.parametrize(
    ("counters", "max_tokens", "finish", "effective"),
    [
        (spare(0), None, "length", 50),
        (spare(-1), None, "length", 50),
        (spare(-1), 50, "length", 50),
        (spare(1), None, "stop", None),
        (spare(2), None, "stop", None),
        (spare(2), 400, "stop", 400),
        # Nobody asks with one token left, so the forward that read this stop is not in the counters.
        (spare(0), 51, "stop", 51),
        (None, None, "stop", None),
        (None, 400, "stop", 400),
        (None, 50, "length", 50),
    ],
)
def test_counters_tell_what_ended_a_reply(
    counters: dict[str, int] | None, max_tokens: int | None, finish: str, effective: int | None
) -> None:
    request = logged(counters).request(max_tokens)

    assert (request.finish, request.max_tokens) == (finish, effective)


@pytest.mark.parametrize(
    ("counters", "max_tokens", "message"),
    [
        (
            spare(3),
            None,
            "1 + rounds + accepted must be the reply's length, or from 1 less to 2 more "
            "(got 1 + 32 + 20 for 50 tokens)",
        ),
        (
            spare(0),
            400,
            "max_tokens must fit the counters, by which the limit or a loop guard ended the reply "
            "(got 400 for 50 tokens, 1 + 29 + 20)",
        ),
        (
            spare(1),
            50,
            "max_tokens must fit the counters, by which the model ended the reply (got 50 for 50 tokens, 1 + 30 + 20)",
        ),
        (spare(1), 49, "max_tokens must not be below the reply's length (got 49 for 50 tokens)"),
        (None, 49, "max_tokens must not be below the reply's length (got 49 for 50 tokens)"),
    ],
)
def test_a_contradiction_between_counters_reply_and_limit_is_refused(
    counters: dict[str, int] | None, max_tokens: int | None, message: str
) -> None:
    assert refusal(lambda: logged(counters).request(max_tokens)) == f"run.log:7: {message}"


@given(strategies.requests(), st.sampled_from(["gated", "graded", "fixed"]), st.booleans())
def test_every_end_is_told_when_the_limit_is(request: Request, policy: str, pipelined: bool) -> None:
    # What a guard ended looks like the limit; what the limit ended, whatever the model would have said, is the limit's.
    assume(request.finish == "length" or (request.finish == "stop" and request.max_tokens != len(request.reply)))
    counters = engine_counters(request, lookup(policy), pipelined=pipelined)
    run = LoggedRun("r", "run.log", 1, request.prompt, request.reply, counters, None)

    assert run.request(request.max_tokens).finish == request.finish


def test_record_makes_a_trace_of_logs(tmp_path: Path) -> None:
    first = write(tmp_path / "one.log", log_text(A, COUNTS | {"rounds": 2}))
    second = write(tmp_path / "two.log", log_text(B) + log_text(A, COUNTS))
    where = str(tmp_path / "mine.jsonl")

    done = record("--from", "mlxcel-log", first, second, "--model", "Qwen3-8B-4bit", "--max-tokens", "40", "-o", where)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "model    Qwen3-8B-4bit\n"
        "from     mlxcel-log one.log, two.log\n"
        f"one          2 tokens after     3, stop    {where}\n"
        f"two          3 tokens after     1, stop    {where}\n"
        f"two-2        2 tokens after     3, stop    {where}\n"
        "kept     3 replies with 7 tokens in 1 trace\n"
    )
    trace = traces.load(where)
    assert trace.header == {
        "format": "breakeven-trace/1",
        "model": "Qwen3-8B-4bit",
        "source": "mlxcel-log",
        "files": ["one.log", "two.log"],
    }
    assert [(r.id, r.prompt.tolist(), r.reply.tolist(), r.max_tokens) for r in trace.requests] == [
        ("one", [1, 2, 3], [4, 5], 40),
        ("two", [6], [7, 8, 9], 40),
        ("two-2", [1, 2, 3], [4, 5], 40),
    ]


def test_record_prints_an_imported_trace_as_one_document(tmp_path: Path) -> None:
    where = str(tmp_path / "mine.jsonl")
    log = write(tmp_path / "one.log", log_text(A))

    done = record("--from", "mlxcel-log", log, "--model", "m", "-o", where, "--json")

    document = json.loads(done.stdout)
    assert document["header"] == {"model": "m", "source": "mlxcel-log", "files": ["one.log"]}
    assert [(one["id"], one["trace"], one["finish"]) for one in document["requests"]] == [("one", where, "stop")]


def test_a_log_that_is_refused_leaves_no_trace(tmp_path: Path) -> None:
    log = write(tmp_path / "one.log", log_text(A, COUNTS | {"rounds": 9}))
    where = tmp_path / "mine.jsonl"

    done = record("--from", "mlxcel-log", log, "--model", "m", "-o", str(where))

    assert (done.exit_code, done.stdout, where.exists()) == (1, "", False)
    assert done.stderr == (
        f"{log}:1: 1 + rounds + accepted must be the reply's length, or from 1 less to 2 more "
        "(got 1 + 9 + 0 for 2 tokens)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run.log",), f"a FILE needs --from {'|'.join(SOURCES)} (got 'run.log')"),
        (("--from", "mlxcel-log"), "--from mlxcel-log needs a FILE"),
        (("--from", "mlxcel-log", "a", "--seed", "0"), "--seed is for asking a model, which --from mlxcel-log is not"),
        (
            ("--from", "mlxcel-log", "a", "--suite", "b"),
            "--suite is for asking a model, which --from mlxcel-log is not",
        ),
    ],
)
def test_options_that_mean_nothing_are_a_wrong_command_line(arguments: tuple[str, ...], message: str) -> None:
    done = record(*arguments, "--model", "m", "-o", "out.jsonl")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"record: {message}; see record --help\n"


def test_the_model_is_required(tmp_path: Path) -> None:
    done = record("--from", "mlxcel-log", "a", "-o", "out.jsonl")

    assert (done.exit_code, done.stderr) == (2, "record: Missing option '--model'; see record --help\n")
