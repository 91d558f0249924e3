"""The `simulate` command as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import calibration
import policies
from simulator import cli, run, settings_file
from traces import Request

REQUEST = {"id": "edit", "prompt": [*range(100, 140)], "reply": [*range(100, 130), 7, 8, 9], "finish": "stop"}
PROSE = {"id": "prose", "prompt": [1, 2, 3], "reply": [*range(200, 260)], "finish": "length"}
HEADER = {"format": "breakeven-trace/1", "model": "m"}


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(cli.simulate, arguments, prog_name="simulate")


def document(*arguments: str) -> Any:
    done = simulate(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return write(tmp_path / "two.jsonl", REQUEST, PROSE)


def write(path: Path, *requests: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *requests)))
    return str(path)


def test_the_document_has_the_fields_of_the_contract_in_order(trace: str) -> None:
    got = document("--policy", "gated", "--trace", trace, "--events")

    counters = ["prompt_tokens", "generated", "rounds", "drafted_rounds", "paused_rounds", "proposed", "accepted"]
    counters += ["shadow_confirmations", "drains", "phantom_drains", "prefill_s", "decode_s", "total_s", "tokens_per_s"]
    plain = ["plain_decode_s", "plain_total_s", "plain_tokens_per_s", "speedup", "decode_speedup"]
    assert list(got) == ["policy", "profile", "trace", "requests", "total", "notes"]
    assert got["profile"] == "gb10-qwen3-1.7b-4bit"
    assert got["trace"] == trace
    assert list(got["requests"][0]) == ["id", *counters, *plain, "events"]
    assert list(got["total"]) == [*counters, *plain, "geomean_speedup"]
    assert got["policy"] == {
        "name": "gated",
        "settings": {
            "pipeline_after": 2,
            "ngram_max": 3,
            "ngram_min": 2,
            "max_draft": 7,
            "match": "latest",
            "narrow": 2,
            "full_at": 1.5,
            "start_ema": 1.0,
            "ema_weight": 0.5,
            "misses": 3,
            "probation_tokens": 2,
            "resume_confirmations": 1,
            "min_pause_tokens": 0,
            "min_tokens_per_round": None,
        },
    }


def test_one_document_in_full(tmp_path: Path) -> None:
    trace = write(tmp_path / "one.jsonl", REQUEST)

    got = document("--policy", "graded", "--trace", trace, "--events")["requests"][0]

    # On the 1.7B of a GB10: a synchronous step 6.343 ms, width 8 20.250 ms, a pipelined step 5.174 ms, h + r 1.169 ms.
    # The reply's first token matches nothing; then 2 tokens of the prompt are known and blocks of 7 land: 1 + 1 + 3 * 8
    # leaves 4 of the copy, which land before 7 differs. 8 and 9 are synchronous, and the stop is read from a pipeline
    # of one step, which costs what a synchronous one does; the forward behind it is not waited for.
    assert got["events"] == "S V8:7 V8:7 V8:7 V8:4 S S B P!"
    decode_s = 4 * 6.343e-3 + 4 * 20.250e-3
    assert got["decode_s"] == pytest.approx(decode_s, abs=1e-12)
    assert got["prefill_s"] == pytest.approx(40 * 0.073e-3, abs=1e-12)
    assert got["plain_decode_s"] == pytest.approx(33 * 5.174e-3 + 1.169e-3, abs=1e-12)
    assert got["decode_speedup"] == pytest.approx(got["plain_decode_s"] / decode_s)
    counters = {"rounds": 9, "drafted_rounds": 4, "paused_rounds": 0, "proposed": 28, "accepted": 25, "drains": 0}
    assert {name: got[name] for name in counters} == counters


def test_two_runs_give_the_same_bytes(trace: str) -> None:
    arguments = ("--policy", "gated", "--policy", "oracle", "--trace", trace, "--json", "--events")

    assert simulate(*arguments).stdout_bytes == simulate(*arguments).stdout_bytes


def test_several_policies_and_traces_come_policies_first(tmp_path: Path, trace: str) -> None:
    other = write(tmp_path / "other.jsonl", PROSE)

    got = document("--policy", "gated", "--policy", "gated:full_at=1.75", "--trace", trace, "--trace", other)

    assert list(got) == ["runs"]
    assert [(one["policy"]["settings"]["full_at"], one["trace"]) for one in got["runs"]] == [
        (1.5, trace),
        (1.5, other),
        (1.75, trace),
        (1.75, other),
    ]


def test_a_directory_means_its_traces(tmp_path: Path) -> None:
    names = [write(tmp_path / name, PROSE) for name in ("b.jsonl", "a.jsonl")]

    got = document("--policy", "plain", "--trace", str(tmp_path))

    assert [one["trace"] for one in got["runs"]] == sorted(names)


def test_plain_is_the_baseline_itself_unless_synchronous(trace: str) -> None:
    pipelined = document("--policy", "plain", "--trace", trace)["total"]
    sync = document("--policy", "plain", "--trace", trace, "--sync")["total"]

    assert (pipelined["speedup"], pipelined["decode_speedup"]) == (1.0, 1.0)
    assert sync["plain_decode_s"] == pipelined["decode_s"]
    assert sync["decode_speedup"] == pytest.approx(5.174 / 6.343, rel=0.03)


def test_totals_are_the_sums_and_speedups_of_the_sums(trace: str) -> None:
    got = document("--policy", "graded", "--trace", trace)

    parts = got["requests"]
    assert got["total"]["decode_s"] == pytest.approx(sum(part["decode_s"] for part in parts))
    assert got["total"]["speedup"] == pytest.approx(
        sum(part["plain_total_s"] for part in parts) / sum(part["total_s"] for part in parts)
    )
    assert got["total"]["geomean_speedup"] == pytest.approx(np.sqrt(np.prod([part["speedup"] for part in parts])))


def test_set_applies_to_every_policy_that_has_the_setting(trace: str) -> None:
    got = document(
        "--policy", "plain", "--policy", "gated", "--policy", "graded:misses=1", "--trace", trace,
        "--set", "misses=2", "--set", "max_draft=5",
    )  # fmt: skip

    settings = [one["policy"]["settings"] for one in got["runs"]]
    assert [one.get("misses") for one in settings] == [None, 2, 1]
    assert [one.get("max_draft") for one in settings] == [None, 5, 5]


def test_policies_and_files_of_settings_come_in_the_order_typed(trace: str, tmp_path: Path) -> None:
    found = str(tmp_path / "found.yaml")
    Path(found).write_text(settings_file.dump(policies.load("fixed"), {}), encoding="utf-8")

    def names(*arguments: str) -> list[str]:
        return [one["policy"]["name"] for one in document(*arguments, "--trace", trace)["runs"]]

    assert names("--settings", found, "--policy", "graded", "--policy", "plain") == ["fixed", "graded", "plain"]
    assert names("--policy", "graded", "--settings", found) == ["graded", "fixed"]

    done = simulate("--settings", found, "--trace", trace, "--set", "max_draft=3")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "--set max_draft: sets a --policy; a file's settings are what it says\n"


def test_the_notes_say_what_the_figures_stand_on(trace: str) -> None:
    profile = ("--profile", "epyc-smollm2-135m-bfloat16")

    warm = document("--policy", "graded", "--trace", trace, *profile)["notes"]
    cold = document("--policy", "graded", "--trace", trace, *profile, "--cold")["notes"]
    bound = document("--policy", "oracle", "--trace", trace, *profile, "--cold")["notes"]

    model = "another model than the profile's SmolLM2-135M-Instruct: only the times are that machine's"
    assert warm[0] == model
    assert cold == [*warm, "the first use of every width is charged (--cold)"]
    assert bound == [*cold, "oracle plans without first uses, so beside --cold it is no bound"]


def test_a_profile_without_a_width_needs_leave_to_interpolate_and_says_so(trace: str) -> None:
    arguments = ("--policy", "graded", "--trace", trace, "--profile", "m4-pro-qwen3-1.7b-4bit")
    refused = simulate(*arguments, "--set", "max_draft=5")
    measured = document(*arguments)
    filled = document(*arguments, "--set", "max_draft=5", "--interpolate-widths")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == (
        "request 'edit' under graded:max_draft=5: width 6 is not in profile m4-pro-qwen3-1.7b-4bit (widths: 1, 8); "
        "--interpolate-widths fills in between\n"
    )
    assert not any("interpolated" in note for note in measured["notes"])
    assert any("interpolated" in note for note in filled["notes"])


REPORT = """\
trace    two.jsonl: 2 requests of m
         another model than the profile's Qwen3-1.7B: only the times are that machine's
policy   graded

request  prompt  generated  rounds  drafted  paused  proposed  accepted  drains  phantom  tokens/s  speedup
edit         40         33       9        4       0        28        25       0        0     301.9    1.600
prose         3         60      59        0       0         0         0       0        0     194.2    0.992
total        43         93      68        4       0        28        25       0        0     222.3    1.151

where the time went  rounds       ms   share
pipelined                58  300.092  71.7 %
synchronous               5   31.715   7.6 %
verify 8                  4   81.000  19.4 %
drains                    0    2.338   0.6 %
prefill                   2    3.139   0.8 %
total                        418.284

graded: 1.15 times plain decoding; 15 % faster
"""


def test_the_report_says_what_happened_where_the_time_went_and_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "two.jsonl", REQUEST, PROSE)
    monkeypatch.chdir(tmp_path)

    done = simulate("--policy", "graded", "--trace", "two.jsonl")

    heading, _, report = done.stdout.partition("\n\n")
    assert heading.startswith("profile  gb10-qwen3-1.7b-4bit (the default): Qwen3-1.7B 4bit on NVIDIA GB10")
    assert "measured at context 300, used for 1..2048" in heading
    assert report == REPORT


def test_several_traces_close_with_their_speedups_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "copy.jsonl", REQUEST)
    write(tmp_path / "prose.jsonl", PROSE)
    monkeypatch.chdir(tmp_path)

    done = simulate("--policy", "plain", "--policy", "graded", "--trace", "copy.jsonl", "--trace", "prose.jsonl")

    # 1.260 is the square root of 1.600 times 0.992; the answer is for the sum of both, as in one trace of both.
    assert done.stdout.endswith("""
speedup by trace              plain  graded
copy.jsonl                    1.000   1.600
prose.jsonl                   1.000   0.992
all requests, geometric mean  1.000   1.260
all requests, total time      1.000   1.151

over all requests, by total time

plain: 1.00 times plain decoding; no difference
graded: 1.15 times plain decoding; 15 % faster
""")


def test_events_in_the_report(trace: str) -> None:
    done = simulate("--policy", "graded", "--trace", trace, "--events")

    assert "\ngraded  edit  S V8:7 V8:7 V8:7 V8:4 S S B P!\n" in done.stdout


def test_policies_stand_side_by_side_with_plain_as_the_baseline(trace: str) -> None:
    done = simulate("--policy", "gated", "--policy", "oracle", "--trace", trace)

    rows = [line.split()[0] for line in done.stdout.splitlines() if line]
    table = rows[rows.index("policy") :]
    assert table[:4] == ["policy", "plain", "gated", "oracle"]
    assert done.stdout.splitlines()[-1].startswith("oracle: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--policy", "gatd"),
            f"no policy named 'gatd' (have: {', '.join(sorted([*policies.names(), 'oracle']))}); did you mean 'gated'?",
        ),
        (("--policy", "gated", "--set", "dpth=3"), "--set dpth: no chosen policy has it (settings: "),
        (
            ("--policy", "plain", "--set", "max_draft=3"),
            "--set max_draft: no chosen policy has it (settings: pipeline_after)",
        ),
        (("--policy", "gated", "--set", "narrow"), "--set: a setting is written NAME=VALUE (got 'narrow')"),
        (("--policy", "gated", "--set", "narrow=NaN"), "narrow must be a whole number (got 'NaN')"),
        (("--policy", "gated", "--profile", "gb11"), "no profile named 'gb11' (shipped: "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(trace: str, arguments: tuple[str, ...], message: str) -> None:
    done = simulate(*arguments, "--trace", trace)

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trace", "story"), "simulate: Missing option '--policy' or '--settings'; see simulate --help\n"),
        (("--policy", "gated"), "simulate: Missing option '--trace'; see simulate --help\n"),
        (("--polcy", "gated"), "simulate: No such option '--polcy'"),
        (("gated",), "simulate: "),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    done = simulate(*arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_a_context_beyond_the_profile_is_refused(tmp_path: Path) -> None:
    trace = write(tmp_path / "long.jsonl", {**PROSE, "prompt": [1, 2] * 1024})

    done = simulate("--policy", "plain", "--trace", trace)

    assert done.exit_code == 1
    assert done.stderr == (
        "request 'prose' under plain: "
        "context 2049 is outside the 1..2048 that profile gb10-qwen3-1.7b-4bit stands for\n"
    )


def test_results_are_a_data_frame_away() -> None:
    request = Request.of("r", REQUEST["prompt"], REQUEST["reply"], "stop")
    frame = run(request, policies.load("graded"), calibration.load(calibration.DEFAULT_PROFILE).costs()).to_frame()

    assert list(frame.columns) == ["kind", "width", "accepted", "emitted", "start_s", "duration_s"]
    assert "".join(frame["kind"]) == "SVVVVSSBP"


def test_a_path_that_is_not_there_says_which_shipped_trace_stands_in() -> None:
    done = simulate("--policy", "plain", "--trace", "nowhere/story.jsonl", "--json")

    assert done.exit_code == 0
    assert done.stderr == "nowhere/story.jsonl: there is no such file; this is the shipped trace story\n"
    assert json.loads(done.stdout)["trace"] == "story"


@pytest.mark.parametrize("model", ["Qwen3-1.7B", "qwen3-1.7b-4bit", "mlx-community/Qwen3-1.7B-4bit"])
def test_a_model_is_the_profile_s_whoever_publishes_it(tmp_path: Path, model: str) -> None:
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ({**HEADER, "model": model}, PROSE)))

    done = simulate("--policy", "plain", "--trace", str(tmp_path / "t.jsonl"))

    assert "another model" not in done.stdout
