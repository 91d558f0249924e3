"""`simulate --serve` as a user sees it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import policies
import traces
from calibration import Costs, ServerCosts
from simulator import cli
from simulator.serving.serve_trace import serve_in_memory, serve_trace
from simulator.serving.server import Server
from simulator.serving.service import Service

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
    times = [
        "arrival_s",
        "queue_s",
        "prefill_s",
        "ttft_s",
        "itl_s",
        "decode_s",
        "total_s",
        "tokens_per_s",
        "decode_tokens_per_s",
    ]
    beside = ["plain_ttft_s", "plain_decode_s", "plain_total_s", "plain_tokens_per_s", "speedup", "decode_speedup"]
    line = ["span_s", "tokens_per_s", "ttft_s", "itl_s", "decode_s", "decode_tokens_per_s", "queue", "rejected"]
    keys = ["policy", "profile", "trace", "serve", "requests", "rejected", "total", "notes", "ticks"]
    assert list(got) == keys
    assert [list(request) for request in got["requests"][:2]] == 2 * [["id", *counters, "finish", *times, *beside]]
    assert got["requests"][2]["reason"] == "structured output"
    assert [(request["id"], request["finish"]) for request in got["requests"]] == [
        ("copy", "stop"),
        ("prose", "length"),
        ("drawn", "guard"),
    ]
    shares = ["lookahead_share", "switch_ticks", "false_switches", "wasted_forwards", "verify_rounds_per_tick"]
    shares += ["accepted_per_verify", "warm_up_s"]
    ends = ["saturated", "plain", "prefill_s", "total_s", "plain_decode_s", "plain_total_s", "geomean_speedup"]
    ends += ["decode_speedup", "speedup"]
    assert list(got["total"]) == [*counters, "ticks", *shares, *line, *ends]
    assert list(got["total"]["plain"]) == line
    assert list(got["total"]["ttft_s"]) == ["mean", "p50", "p95", "p99"]
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
        "arrivals": "now",
        "queue_limit": None,
        "seed": 0,
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
    done = simulate("--policy", "fixed", "--trace", trace, "--max-batch", "3")

    assert done.stdout.split("\n\n", 1)[1] == REPORT.format(trace=trace)


REPORT = """\
trace    {trace}: 3 requests of m
         another model than the profile's Qwen3-1.7B: only the times are that machine's
server   4 slots, proposals in batches of up to 3 rows and contexts of up to 4096 tokens, paged, arrivals now
policy   fixed

request  prompt  generated  rounds  drafted  paused  proposed  accepted  drains  phantom  per verify  finish
copy         20         13       4        2       0        14         9       0        0        4.50    stop
prose         3          3       2        0       0         0         0       0        0           -  length
drawn         1          2       1        0       0         0         0       0        0           -   guard
total        24         18       7        2       0        14         9       0        0        4.50
drawn never proposes: structured output

ticks  prefill  steady  switch  sync  verify  total  in flight  false switches  wasted forwards  verifies a tick
plain        3       9       0     4       0     16     76.9 %               0                2            0.000
fixed        3       0       0     2       2      7      0.0 %               0                0            0.500

time to first token, ms   mean    p50    p95    p99
plain                    40.24  40.24  60.36  60.36
fixed                    116.7    155  175.1  175.1

time between tokens, ms   mean    p50    p95    p99
plain                    14.74  6.912  61.21  61.21
fixed                    19.88      0  175.9  175.9

decode tokens/s of a request, the slow tail to the right   mean    p50    p95    p99
plain                                                      52.2  47.69  36.86  36.86
fixed                                                     42.21  47.69  28.11  28.11

in all  tokens/s      s  waiting: mean  p95  most  refused
plain       96.4  0.187           0.32    2     3        0
fixed       70.3  0.256           1.13    2     3        0

fixed: the first verify of every width took 115 ms, once; what building its kernels takes is not known and not in it
fixed: 0.74 times plain decoding; 26 % slower (0.73 times its tokens/s in all)
"""


def test_what_keeps_rows_from_proposing_and_clients_from_sending_is_said(trace: str) -> None:
    done = simulate("--policy", "fixed", "--trace", trace, "--max-batch", "1", "--concurrency", "4")
    ticks = document("--policy", "fixed", "--trace", trace, "--max-batch", "1", "--concurrency", "4", "--events")[
        "ticks"
    ]

    decoding = [tick for tick in ticks if tick["kind"] != "prefill"]
    crowded = [tick for tick in decoding if len(tick["rows"]) > 1]
    assert not any(tick["asked"] for tick in crowded)
    assert (
        f"fixed: nobody was asked for a proposal in {len(crowded) / len(decoding) * 100:.3g} % of the decode ticks, "
        "which had more than 1 row (--max-batch)\n"
    ) in done.stdout
    assert "\n         only 3 requests for 4 clients: the others send nothing\n" in done.stdout


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
        (["--concurrency", "-2"], "concurrency must be at least 1 (got -2)"),
        (["--queue-limit", "0"], "queue_limit must be at least 1 (got 0)"),
        (
            ["--queue-limit", "1", "--concurrency", "2"],
            "queue_limit: clients wait for their answers, so none of theirs is refused",
        ),
        (
            ["--arrivals", "rate:1/s", "--concurrency", "2"],
            "concurrency: clients send when they are answered, and not by arrivals (got 'rate:1/s')",
        ),
        (
            ["--arrivals", "poisson:0/s"],
            "arrivals: the rate of 'poisson:0/s' must be a number from 1e-09 to 1e+09 (got '0')",
        ),
        (
            ["--arrivals", "rate:-3/s"],
            "arrivals: the rate of 'rate:-3/s' must be a number from 1e-09 to 1e+09 (got '-3')",
        ),
        (
            ["--arrivals", "poisson:nan/s"],
            "arrivals: the rate of 'poisson:nan/s' must be a number from 1e-09 to 1e+09 (got 'nan')",
        ),
        (
            ["--arrivals", "gamma:1e-300/s,2"],
            "arrivals: the rate of 'gamma:1e-300/s,2' must be a number from 1e-09 to 1e+09 (got '1e-300')",
        ),
        (
            ["--arrivals", "gamma:2/s,0"],
            "arrivals: the shape of 'gamma:2/s,0' must be a number from 1e-09 to 1e+09 (got '0')",
        ),
        (
            ["--arrivals", "poisson:3"],
            "arrivals: no such process 'poisson:3' (have: now, recorded, rate:RATE/s, poisson:RATE/s, "
            "gamma:RATE/s,SHAPE)",
        ),
        (
            ["--arrivals", "recorded"],
            "{trace}: request 'copy': has no arrival_s, so it cannot arrive as recorded",
        ),
        (
            ["--storage", "dense"],
            "profile gb10-qwen3-1.7b-4bit has no cost of a step of 3 rows on dense storage (rows: 1)",
        ),
        (
            ["--profile", "gb10-qwen3-4b-4bit"],
            "profile gb10-qwen3-4b-4bit has no cost of a verify of width 2 on paged storage (widths: none)",
        ),
        (
            ["--profile", "gb10-qwen3-4b-4bit", "--storage", "dense"],
            "profile gb10-qwen3-4b-4bit has no cost of a step of 3 rows on dense storage (rows: none)",
        ),
        (
            ["--set", "max_draft=12", "--concurrency", "1"],
            "width 11 is not in profile gb10-qwen3-1.7b-4bit (widths: 1..10)",
        ),
        (["--max-kv-size", "20"], "{trace}: request 'copy': a prompt of 20 tokens does not fit max_kv_size 20"),
        (["--policy", "oracle"], "--policy oracle: plans one reply at a time, so it cannot serve"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(trace: str, arguments: list[str], message: str) -> None:
    done = simulate("--policy", "gated", "--trace", trace, *arguments)

    assert (done.exit_code, done.stderr, done.stdout) == (1, f"{message.format(trace=trace)}\n", "")


def test_arrivals_out_of_order_are_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    lines = [HEADER, {**PROSE, "id": "a", "arrival_s": 2.0}, {**PROSE, "id": "b", "arrival_s": 1.5}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    done = simulate("--policy", "plain", "--trace", str(path), "--arrivals", "recorded")

    message = f"{path}: request 'b': arrives at 1.5 s, before the request ahead of it (2 s)\n"
    assert (done.exit_code, done.stderr, done.stdout) == (1, message, "")


def burst(path: Path, *requests: dict[str, object]) -> tuple[str, ...]:
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *requests)))
    return ("--trace", str(path), "--parallel", "1", "--queue-limit", "1", "--arrivals", "recorded")


def test_what_only_one_of_two_servers_refused_is_not_compared(tmp_path: Path) -> None:
    copied = [*range(1, 301)]
    requests = (
        {"id": "long", "prompt": copied, "reply": copied, "finish": "length", "arrival_s": 0.0},
        {"id": "second", "prompt": [1], "reply": [5, 6], "finish": "length", "arrival_s": 0.01},
        {"id": "third", "prompt": [1], "reply": [5, 6], "finish": "length", "arrival_s": 1.5},
    )
    arguments = ("--policy", "gated", *burst(tmp_path / "burst.jsonl", *requests))

    got = document(*arguments)
    text = simulate(*arguments)

    said = "gated refused 0 requests and plain serving 1, not the same ones: only the 2 that both served are compared"
    assert got["notes"][-1] == said
    assert got["rejected"] == []
    assert [one["decode_speedup"] is None for one in got["requests"]] == [False, False, True]
    both = got["requests"][:2]
    sums = [sum(one[name] for one in both) for name in ("plain_decode_s", "decode_s")]
    assert got["total"]["decode_speedup"] == pytest.approx(sums[0] / sums[1])
    assert [got["total"][name] for name in ("speedup", "plain_decode_s", "plain_total_s")] == [None] * 3
    assert (text.exit_code, text.stderr) == (0, "")
    assert said in text.stdout


def test_who_arrives_at_one_time_arrives_in_one_tick(tmp_path: Path) -> None:
    short = {"prompt": [1], "reply": [5, 6], "finish": "length"}
    path = tmp_path / "pair.jsonl"
    # 0.9 + (1.95 - 0.9) is less than 1.95.
    lines = [HEADER, *({"id": f"r{at}", **short, "arrival_s": s} for at, s in enumerate((0.9, 1.95, 1.95)))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    got = document("--policy", "plain", "--trace", str(path), "--arrivals", "recorded", "--events")

    assert [tick["arrived"] for tick in got["ticks"] if tick["arrived"]] == [["r0"], ["r1", "r2"]]
    assert [one["arrival_s"] for one in got["requests"]] == [0.9, 1.95, 1.95]


def test_a_pipe_is_refused_since_it_can_be_read_only_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    done = simulate("--policy", "gated", "--trace", str(pipe))

    assert (done.exit_code, done.stderr) == (
        1,
        f"{pipe}: must be a file, to be read once for every policy (got a pipe or a device)\n",
    )


def test_a_schedule_without_prices_is_told_without_times(trace: str) -> None:
    got = document("--policy", "plain", "--trace", trace, "--storage", "dense", "--events")

    reason = "profile gb10-qwen3-1.7b-4bit has no cost of a step of 3 rows on dense storage (rows: 1)"
    assert got["notes"][-1] == f"not timed: {reason}"
    assert got["ticks"]
    assert "ttft_s" not in got["total"]


def test_the_same_seed_gives_the_same_bytes_and_another_one_other_times(trace: str) -> None:
    arguments = ("--policy", "gated", "--trace", trace, "--json", "--arrivals", "poisson:20/s", "--seed")

    first, again, other = (simulate(*arguments, seed).stdout for seed in ("1", "1", "2"))

    assert first == again
    assert json.loads(first)["total"]["ttft_s"] != json.loads(other)["total"]["ttft_s"]


def test_saturation_is_said_as_such(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    lines = [HEADER, *({**PROSE, "id": str(place)} for place in range(12))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    done = simulate("--policy", "plain", "--trace", str(path), "--arrivals", "rate:100/s", "--queue-limit", "5")

    assert done.stdout.splitlines()[-2].startswith("saturated under plain: 5 waited when the last request came, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "2"], "--seed needs --serve"),
        (["--parallel", "2"], "--parallel needs --serve"),
        (["--max-kv-size", "2"], "--max-kv-size needs --serve"),
        (["--serve", "--against", "x.log"], "--against is about one request at a time and does not go with --serve"),
        (["--serve", "--cold"], "--cold is about one request at a time and does not go with --serve"),
    ],
)
def test_a_wrong_command_line_is_said_in_one_line(trace: str, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.simulate, ["--policy", "gated", "--trace", trace, *arguments], prog_name="simulate")

    assert (done.exit_code, done.stderr) == (2, f"simulate: {message}; see simulate --help\n")


def test_what_is_in_memory_is_served_as_what_is_in_a_file(trace: str) -> None:
    costs = ServerCosts(Costs("m", range(1, 100), dict.fromkeys(range(1, 9), 0.01), read_s=0.002))
    service = Service(server=Server(parallel=1), clients=2)
    gated = policies.load("gated")

    [read] = serve_trace(trace, [gated], costs, service, events=False)
    held = serve_in_memory(traces.load(trace), gated, costs, service)

    assert read.timeline is not None
    assert held.timeline is not None
    assert held.timeline.document() == read.timeline.document()
    assert (held.kinds, held.wasted, held.warm_up_s) == (read.kinds, read.wasted, read.warm_up_s)
