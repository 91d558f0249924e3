"""`simulate --serve` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from simulator import cli

HEADER = {"format": "breakeven-trace/1", "model": "m"}
COPY = {"id": "copy", "prompt": [*range(100, 120)], "reply": [*range(100, 112), 7], "finish": "stop"}
PROSE = {"id": "prose", "prompt": [1, 2, 3], "reply": [200, 201, 202], "finish": "length"}
DRAWN = {
    "id": "drawn",
    "prompt": [1],
    "reply": [5, 6],
    "finish": "guard",
    "eligible": False,
    "reason": "structured output",
}


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(cli.simulate, ["--serve", *arguments], prog_name="simulate")


def document(*arguments: str) -> Any:
    done = simulate(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "three.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, COPY, PROSE, DRAWN)))
    return str(path)


def test_the_document_has_the_fields_of_the_contract_in_order(trace: str) -> None:
    got = document("--policy", "gated", "--trace", trace, "--events")

    counters = ["prompt_tokens", "generated", "rounds", "drafted_rounds", "paused_rounds", "proposed", "accepted"]
    counters += ["shadow_confirmations", "drains", "phantom_drains"]
    assert list(got) == ["policy", "profile", "trace", "serve", "requests", "total", "notes", "ticks"]
    assert [list(request) for request in got["requests"][:2]] == 2 * [["id", *counters, "finish"]]
    assert got["requests"][2]["reason"] == "structured output"
    assert [(request["id"], request["finish"]) for request in got["requests"]] == [
        ("copy", "stop"),
        ("prose", "length"),
        ("drawn", "guard"),
    ]
    assert list(got["total"]) == [*counters, "ticks"]
    assert got["serve"] == {
        "parallel": 4,
        "max_batch": 2,
        "max_batch_prefill": 1,
        "prefill_chunk": 2048,
        "grant_interval": 16,
        "storage": "paged",
        "paged_limit": 4096,
        "max_kv_size": None,
        "pipelined": True,
        "clients": None,
    }


def test_every_tick_is_told(trace: str) -> None:
    ticks = document("--policy", "fixed", "--trace", trace, "--events", "--parallel", "1", "--concurrency", "1")[
        "ticks"
    ]

    assert ticks[0] == {
        "kind": "prefill",
        "arrived": ["copy"],
        "rows": ["copy"],
        "asked": {},
        "emitted": {"copy": 1},
        "verify": [],
        "primed": False,
        "teardown": 0,
        "ended": {},
    }
    assert ticks[2] == {
        "kind": "verify",
        "arrived": [],
        "rows": ["copy"],
        "asked": {"copy": 7},
        "emitted": {"copy": 8},
        "verify": [{"id": "copy", "width": 8, "accepted": 7}],
        "primed": False,
        "teardown": 0,
        "ended": {},
    }
    # The next client's request comes with the tick after a release.
    assert [tick["arrived"] for tick in ticks if tick["kind"] == "prefill"] == [["copy"], ["prose"], ["drawn"]]
    assert [tick["ended"] for tick in ticks if tick["ended"]] == [
        {"copy": "stop"},
        {"prose": "length"},
        {"drawn": "guard"},
    ]


def test_the_report_in_full(trace: str) -> None:
    done = simulate("--policy", "fixed", "--trace", trace, "--max-batch", "3", "--storage", "dense")

    assert done.stdout.split("\n\n", 1)[1] == REPORT.format(trace=trace)


REPORT = """\
trace    {trace}: 3 requests of m
         another model than the profile's Qwen3-1.7B: only the times are that machine's
server   4 slots, proposals in batches of up to 3 rows, dense
policy   fixed

request  prompt  generated  rounds  drafted  paused  proposed  accepted  drains  phantom  per verify  finish
copy         20         13       4        2       0        14         9       0        0        4.50    stop
prose         3          3       2        0       0         0         0       0        0           -  length
drawn         1          2       1        0       0         0         0       0        0           -   guard
total        24         18       7        2       0        14         9       0        0        4.50
drawn never proposes: structured output

ticks  prefill  steady  switch  sync  verify  total
fixed        3       0       0     2       2      7
"""


def test_several_policies_stand_side_by_side(trace: str) -> None:
    done = simulate("--policy", "fixed", "--policy", "plain", "--trace", trace, "--events")

    assert done.exit_code == 0
    assert "policy  prompt  generated  rounds" in done.stdout
    assert "\n\nplain, tick by tick\nprefill  copy +1\n" in done.stdout


def test_sync_keeps_the_server_from_pipelining(trace: str) -> None:
    kinds = document("--policy", "plain", "--trace", trace, "--sync")["total"]["ticks"]

    assert set(kinds) == {"prefill", "sync"}


def test_two_runs_give_the_same_bytes(trace: str) -> None:
    arguments = ("--policy", "gated", "--trace", trace, "--json", "--events")

    assert simulate(*arguments).stdout_bytes == simulate(*arguments).stdout_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parallel", "0"], "parallel must be at least 1 (got 0)"),
        (["--max-batch", "-1"], "max_batch must be at least 1 (got -1)"),
        (["--concurrency", "0"], "concurrency must be at least 1 (got 0)"),
        (["--max-kv-size", "20"], "request 'copy': a prompt of 20 tokens does not fit max_kv_size 20"),
        (["--policy", "oracle"], "oracle plans one reply at a time and cannot serve"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(trace: str, arguments: list[str], message: str) -> None:
    done = simulate("--policy", "gated", "--trace", trace, *arguments)

    assert (done.exit_code, done.stderr, done.stdout) == (1, f"{message}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parallel", "2"], "--parallel needs --serve"),
        (["--max-kv-size", "2"], "--max-kv-size needs --serve"),
        (["--serve", "--against", "x.log"], "--against compares one request at a time and does not go with --serve"),
    ],
)
def test_a_wrong_command_line_is_said_in_one_line(trace: str, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.simulate, ["--policy", "gated", "--trace", trace, *arguments], prog_name="simulate")

    assert (done.exit_code, done.stderr) == (2, f"simulate: {message}; see simulate --help\n")
