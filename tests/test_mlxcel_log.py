"""Logs of the reference engine: what is read out of them, in whatever order they came, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.mlxcel_logs import counters_line, ids_lines, log_text, rate_line, write
from tests.trace_lines import refusal
from traces import Request
from traces.mlxcel_log import LoggedRun, read_log, read_logs

A = Request.of("a", [1, 2, 3], [4, 5], "stop")
B = Request.of("b", [6], [7, 8, 9], "stop")
A_IDS, B_IDS = ids_lines(A), ids_lines(B)
COUNTS = {"rounds": 3, "drafted_rounds": 0, "paused_rounds": 1, "proposed": 0, "accepted": 0}
FORGED = (
    "[prompt ids (1): 70]\n[token ids (2): 1, 2]\n[Generated 3 tokens in 1.00s = 3.00 tok/s]\n"
    "I print [token ids (9): 1] and [Generated 2 tokens in 1.00s = 2.00 tok/s]"
)


def said(run: LoggedRun) -> tuple[list[int], list[int], float | None]:
    return run.prompt.tolist(), run.reply.tolist(), run.tokens_per_s


def lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"


def refused(tmp_path: Path, *parts: str) -> str:
    where = write(tmp_path / "run.log", lines(*parts))
    return refusal(lambda: read_log(where)).replace(str(tmp_path), "")


def test_a_run_is_read_in_full(tmp_path: Path) -> None:
    counters = COUNTS | {"shadow_confirmations": 2}
    where = write(tmp_path / "run.log", "cargo: noise\n" + log_text(A, counters, seconds=0.96))

    [run] = read_log(where)

    assert (run.id, run.file, run.line, run.where) == ("run", where, 2, f"{where}:2")
    assert said(run) == ([1, 2, 3], [4, 5], 2.08)
    assert run.counters == counters


def test_a_log_may_be_packed(tmp_path: Path) -> None:
    where = tmp_path / "run.log.gz"
    where.write_bytes(gzip.compress(log_text(A).encode()))

    [run] = read_log(str(where))

    assert (run.id, *said(run)) == ("run", [1, 2, 3], [4, 5], 4.0)


def test_the_reference_s_own_line_of_counters_is_read(tmp_path: Path) -> None:
    line = (
        "[Prompt lookup] rounds=63 drafted_rounds=41 paused_rounds=0 proposed=252 accepted=147 "
        "acceptance_rate=0.5833 tokens_per_forward=3.3175 shadow_confirmations=0"
    )
    reply = ", ".join(map(str, range(210)))
    rate = "[Generated 210 tokens in 0.96s = 218.28 tok/s]"

    [run] = read_log(write(tmp_path / "edit_fn.log", lines(A_IDS[0], rate, f"[token ids (210): {reply}]", line)))

    assert list((run.counters or {}).values()) == [63, 41, 0, 252, 147, 0]
    assert run.tokens_per_s == 218.28
    assert run.request().finish == "stop"  # 1 + 63 + 147 is one more than 210


def test_a_build_before_shadow_probes_and_a_run_without_lookup_or_rate_are_read(tmp_path: Path) -> None:
    older = read_log(write(tmp_path / "older.log", lines(*A_IDS, counters_line(COUNTS, 2))))[0]
    plain = read_log(write(tmp_path / "plain.log", lines(*A_IDS)))[0]

    assert older.counters == COUNTS
    assert (plain.counters, plain.tokens_per_s) == (None, None)


@pytest.mark.parametrize("listed", ["4, 5", "4,5", "4 5", "[4, 5]", "[4 5]", " 4,  5, ", ""])
def test_ids_may_be_separated_in_any_way(tmp_path: Path, listed: str) -> None:
    text = lines(A_IDS[0], f"[token ids (2):{listed or '4,5'}]\r")

    assert said(read_log(write(tmp_path / "run.log", text))[0])[1] == [4, 5]


RATE_A, RATE_B = rate_line(2, 0.5), rate_line(3, 0.5)
TEXT = "Generating...\n" + FORGED
STREAMS = {
    "ids around the text": (A_IDS[0], TEXT, RATE_A, A_IDS[1], B_IDS[0], TEXT, RATE_B, B_IDS[1]),
    "ids before the rate": (A_IDS[0], TEXT, A_IDS[1], RATE_A, B_IDS[0], TEXT, B_IDS[1], RATE_B),
    "ids after the text": (TEXT, RATE_A, *A_IDS, TEXT, RATE_B, *B_IDS),
    "stdout held back": (*A_IDS, TEXT, RATE_A, *B_IDS, TEXT, RATE_B),
    "stderr, then stdout": (*A_IDS, *B_IDS, TEXT, RATE_A, TEXT, RATE_B),
    "stdout, then stderr": (TEXT, RATE_A, TEXT, RATE_B, *A_IDS, *B_IDS),
}


@pytest.mark.parametrize("parts", STREAMS.values(), ids=STREAMS)
def test_streams_may_be_mixed_in_any_order_and_text_may_look_like_them(tmp_path: Path, parts: tuple[str, ...]) -> None:
    found = read_log(write(tmp_path / "run.log", lines(*parts)))

    assert [run.id for run in found] == ["run", "run-2"]
    assert list(map(said, found)) == [([1, 2, 3], [4, 5], 4.0), ([6], [7, 8, 9], 6.0)]


@pytest.mark.parametrize("prompt", ["Why?", "Rename it:\n[1] a\nuse_[b]", "ends its line\n"])
def test_ids_may_follow_the_prompt_s_echo(tmp_path: Path, prompt: str) -> None:
    # Both streams in one: the echo is printed before decoding, without an end of line, the ids after it.
    forged = "" if prompt.endswith("\n") else FORGED
    ran = [
        f"Generating...\n{prompt}{ids[0]}\n{ids[1]}\nsaid\n{forged}\n\n{rate_line(len(one.reply), 0.5)}"
        for one, ids in ((A, A_IDS), (B, B_IDS))
    ]

    found = read_log(write(tmp_path / "run.log", lines("Loading model", *ran)))

    assert [said(run) for run in found] == [([1, 2, 3], [4, 5], 4.0), ([6], [7, 8, 9], 6.0)]


def test_an_echo_is_none_unless_the_reply_s_ids_are_on_the_next_line(tmp_path: Path) -> None:
    said_of_it = f"it prints {A_IDS[0]}"

    [run] = read_log(write(tmp_path / "run.log", lines("Generating...", said_of_it, "and more", *B_IDS)))

    assert said(run) == ([6], [7, 8, 9], None)


def test_stderr_alone_has_no_rates(tmp_path: Path) -> None:
    found = read_log(write(tmp_path / "run.log", lines(*A_IDS, counters_line(COUNTS, 2), *B_IDS)))

    assert list(map(said, found)) == [([1, 2, 3], [4, 5], None), ([6], [7, 8, 9], None)]
    assert [run.counters for run in found] == [COUNTS, None]


def test_a_profile_in_the_rate_s_place_is_no_rate(tmp_path: Path) -> None:
    forged = "[Generated 3 tokens in 1.00s = 3.00 tok/s]"
    text = lines(A_IDS[0], "Generating...", forged, "[Profile Results]", "Decode: 4.00 tok/s", A_IDS[1])

    assert read_log(write(tmp_path / "run.log", text))[0].tokens_per_s is None


def test_a_reply_too_short_to_be_timed_has_no_rate(tmp_path: Path) -> None:
    text = lines(*A_IDS, "[Generated 2 tokens in 0.00s = inf tok/s]")

    assert read_log(write(tmp_path / "run.log", text))[0].tokens_per_s is None


def test_text_need_not_be_utf_8_and_may_hold_other_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(f"{A_IDS[0]}\nGenerating...\n\u2028{B_IDS[1]}\x0c{B_IDS[1]}\n".encode() + b"\xe2\x82\n")
    with path.open("a") as file:
        file.write(A_IDS[1] + "\n")

    assert said(read_log(str(path))[0])[1] == [4, 5]


ADVICE = "set MLXCEL_PRINT_TOKEN_IDS and log stdout and stderr together (2>&1)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("Generating...", RATE_A), f"/run.log: holds no line [prompt ids (n): ...]; {ADVICE}"),
        ((A_IDS[0],), f"/run.log:1: the run that begins here has no line [token ids (n): ...]; {ADVICE}"),
        (
            (A_IDS[0], "Generating...", *B_IDS[:1], "Generating...", B_IDS[1]),
            f"/run.log:1: the run that begins here has no line [token ids (n): ...]; {ADVICE}",
        ),
        (
            (A_IDS[1], A_IDS[0], B_IDS[1]),
            f"/run.log:1: the run that begins here has no line [prompt ids (n): ...]; {ADVICE}",
        ),
        (
            (*A_IDS, *B_IDS, "Generating...", RATE_A),
            "/run.log: stdout and stderr must hold the same runs (got 1 and 2); log both together (2>&1)",
        ),
        (
            ("", A_IDS[0], "[token ids (3): 4, 5]"),
            "/run.log:3: token ids must be as many as their line says (got 2 for 3)",
        ),
        ((A_IDS[0], "[token ids (0): ]"), "/run.log:2: token ids must hold at least one token (got [])"),
        (("[prompt ids (2): 1, x]", A_IDS[1]), "/run.log:1: prompt ids must be integers (got 'x')"),
        (
            ("[prompt ids (2): 1, -4]", A_IDS[1]),
            "/run.log:1: prompt ids[1] must be an integer from 0 to 2147483647 (got -4)",
        ),
        (
            (A_IDS[0], "[token ids (1): 2147483648]"),
            "/run.log:2: token ids[0] must be an integer from 0 to 2147483647 (got 2147483648)",
        ),
        ((*A_IDS, RATE_B), "/run.log:3: the rate must be that of the reply (got 3 tokens for 2 token ids)"),
        (
            (*A_IDS, "[Generated 2 tokens in 1.00s = fast tok/s]"),
            "/run.log:3: the rate must be a number (got 'fast')",
        ),
        (
            (*A_IDS, "[Prompt lookup] rounds=1 accepted=2"),
            "/run.log:3: [Prompt lookup] must have drafted_rounds (got rounds, accepted)",
        ),
        (
            (*A_IDS, counters_line(COUNTS, 2).replace("rounds=3", "rounds=-3")),
            "/run.log:3: rounds must be an integer >= 0 (got '-3')",
        ),
    ],
)
def test_what_is_refused_says_where_and_what(tmp_path: Path, parts: tuple[str, ...], message: str) -> None:
    assert refused(tmp_path, *parts) == message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    where = str(tmp_path / "none.log")

    assert refusal(lambda: read_log(where)) == f"{where}: cannot be read (No such file or directory)"


def test_two_runs_of_one_id_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = write(tmp_path / "run-2.log", lines(*A_IDS))
    second = write(tmp_path / "other" / "run.log", lines(*A_IDS, *B_IDS))

    assert refusal(lambda: read_logs([first, second])) == (
        f"{second}:3: a run's id is its file's stem, and 'run-2' is taken by {first}:1; rename one of the files"
    )
