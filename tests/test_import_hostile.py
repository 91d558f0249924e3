"""Files made to break an importer: whatever stands where, it is read or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.imported_files import Letters, imported, write
from tests.trace_lines import refusal
from traces import TraceError
from traces.importing import exchange
from traces.importing.formats import ARRIVALS, EXCHANGES, PAIRS
from traces.importing.two_columns import COLUMNS

HUGE = 10**400
"""An integer that no float holds."""
VCR: dict[str, Any] = {"prompt_tokens": 1, "output_tokens": 1, "output_token_ids": [3], "arrival_ms": 0}
GOOD: dict[str, dict[str, Any]] = {
    "pairs": {"prompt": [1], "response": [2]},
    "arctic-inference": {"prompt": "a", "response": "b"},
    "sharegpt": {"conversations": [{"from": "user", "value": "a"}, {"from": "gpt", "value": "b"}]},
    "llmservingsim": {
        "input_tok_ids": [1],
        "output_tok_ids": [2],
        "input_toks": 1,
        "output_toks": 1,
        "arrival_time_ns": 0,
    },
    "specdecode-bench": {"prompt_token_ids": [1], "generated_token_ids": [2]},
    "vllm-vcr": {**VCR, "finish_reason": "stop"},
    "mooncake": {"timestamp": 1},
}
HOSTILE = [[], {}, [[]], [{}], [None], ["\ud800"], True, [True], -1, 1.5, "", "\ud800", "a\nb", None]
HUGE_ONES = [HUGE, -HUGE, [HUGE], 10**3999, [10**3999], {"a": 10**3999}, 10**9]


def read(source: str, file: str) -> None:
    if source in ARRIVALS:
        list(ARRIVALS[source](file))
        return
    for one in PAIRS[source](file, COLUMNS) if source in PAIRS else EXCHANGES[source](file):
        exchange.request(one, Letters(), None)


@pytest.mark.parametrize(("source", "key"), [(source, key) for source, good in GOOD.items() for key in good])
def test_any_value_is_read_or_refused_in_one_line(source: str, key: str, tmp_path: Path) -> None:
    where = tmp_path / "f.jsonl"
    read(source, write(where, json.dumps(GOOD[source])))
    for value in [*HOSTILE, *HUGE_ONES]:
        file = write(where, json.dumps({**GOOD[source], key: value}))
        try:
            read(source, file)
        except TraceError as error:
            message = str(error)
            assert message.startswith(f"{file}:1: ")
            assert message.isprintable()
            assert len(message) < len(file) + 250


@pytest.mark.parametrize(
    ("source", "key"), [("mooncake", "timestamp"), ("llmservingsim", "arrival_time_ns"), ("vllm-vcr", "arrival_ms")]
)
@pytest.mark.parametrize("number", [HUGE, 10**3999])
def test_a_time_beyond_every_float_is_refused(source: str, key: str, number: int, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", json.dumps({**GOOD[source], key: number}))

    assert refusal(lambda: read(source, file)).startswith(f"{file}:1: {key} must be a finite number >= 0 (got 1000000")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"finish_reason": []}, "finish_reason must be one of stop, length, abort, error, repetition (got [])"),
        ({"output_token_ids": [[]]}, "reply[0] must be an integer from 0 to 2147483647 (got [])"),
        ({"prompt_tokens": 10**9}, "prompt_tokens must be an integer from 1 to 4194304 (got 1000000000)"),
        ({"prompt_tokens": 2**22 + 1}, "prompt_tokens must be an integer from 1 to 4194304 (got 4194305)"),
    ],
)
def test_a_capture_that_nobody_made_is_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", json.dumps({**VCR, **changes}))

    assert refusal(lambda: imported("vllm-vcr", file)) == f"{file}:1: {message}"


@pytest.mark.parametrize("last", [False, 0.0, [], "a"])
def test_an_id_that_ends_a_reply_is_an_integer(last: object, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", json.dumps({"prompt": [1], "response": [2, last]}))

    assert refusal(lambda: read("pairs", file)) == (
        f"{file}:1: reply[1] must be an integer from 0 to 2147483647 (got {last!r})"
    )


@pytest.mark.parametrize("source", GOOD)
def test_a_list_that_ends_in_a_comma_is_refused(source: str, tmp_path: Path) -> None:
    good = json.dumps(GOOD[source])
    where = tmp_path / "f.json"

    def told(text: str) -> str:
        file = write(where, text)
        return refusal(lambda: read(source, file)).removeprefix(f"{file}:")

    assert told(f"[{good},]") == "1: a list must go on after ',' (got ']')"
    assert told(f"[{good},\n{good}, \n\n]\n") == "4: a list must go on after ',' (got ']\\n')"
    assert told(f"[{good},") == "1: a list must go on after ',' (got '')"
    assert told(f"[,{good}]").startswith("1: not JSON: expecting value")
    assert told(f"\u00a0[{good}]").startswith("1: not JSON: expecting value")
    assert told(f"[{good}]\u00a0") == "1: nothing may follow the list (got '\\xa0')"


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("pairs", {"prompt": "\ud800", "response": "b"}),
        ("sharegpt", {"conversations": [{"from": "user", "value": "\ud800"}]}),
    ],
)
def test_text_that_no_tokenizer_takes_is_refused(source: str, values: object, tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", json.dumps(values))

    assert refusal(lambda: read(source, file)).endswith(
        "must be text that UTF-8 can hold (got the lone surrogate '\\ud800')"
    )


def test_names_of_keys_and_columns_do_not_break_the_line(tmp_path: Path) -> None:
    rows = write(tmp_path / "f.csv", '"a\nb",c\n1,2\n')
    keys = write(tmp_path / "f.jsonl", json.dumps({"a\nb": 1}))
    many = write(tmp_path / "g.jsonl", json.dumps(dict.fromkeys(map(str, range(9999)), 1)))

    assert refusal(lambda: read("azure", rows)) == f"{rows}:1: has no column 'TIMESTAMP' (got ['a\\nb', 'c'])"
    assert refusal(lambda: read("mooncake", keys)) == f"{keys}:1: must have 'timestamp' (got ['a\\nb'])"
    assert refusal(lambda: read("vllm-vcr", many)).endswith("(got ['0', '1', '2', '3', '4', '5', ...])")


def test_a_cell_that_is_nested_too_deeply_is_text(tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", f"prompt,response\n{'[' * 50_000}{']' * 50_000},b\n")

    read("pairs", file)
    assert "prompt must be a list" in refusal(lambda: read("pairs", write(tmp_path / "g.csv", _after_ids(file))))


def _after_ids(file: str) -> str:
    header, row = Path(file).read_text().splitlines()
    return f"{header}\n[1],[2]\n{row}\n"
