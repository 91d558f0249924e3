"""What other programs keep, read as requests: ids as they are, text by a tokenizer, arrivals in order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import traces
from tests import strategies
from tests.imported_files import END, WITH_IDS, Letters, csv_text, imported, json_lines, llmservingsim, vllm_vcr, write
from traces import Request
from traces.importing import arrivals, exchange
from traces.importing.exchange import Exchange, Ids, Text, by_arrival
from traces.importing.formats import ARRIVALS, EXCHANGES, PAIRS
from traces.importing.text_tokens import Message
from traces.importing.two_columns import COLUMNS

A = Request.of("mine-1", [1, 2, 3], [4, 5], "stop", arrival_s=0.0)
B = Request.of("mine-2", [6], [7, 8, 9], "stop", arrival_s=0.25)


def text(letters: Iterable[int]) -> str:
    return "".join(map(chr, letters))


def said(request: Request) -> tuple[list[int], list[int]]:
    return request.prompt.tolist(), request.reply.tolist()


def in_text(source: str, file: str) -> list[tuple[str, str, str]]:
    """Return id, prompt and reply of what is read with a tokenizer of letters."""
    read = PAIRS[source](file, COLUMNS) if source in PAIRS else EXCHANGES[source](file)
    requests = [exchange.request(one, Letters(), None) for one in read]
    return [(one.id, text(one.prompt), one.text or "") for one in requests if one and text(one.reply) == one.text]


@pytest.mark.parametrize("name", WITH_IDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(request=strategies.requests())
def test_ids_that_are_written_and_read_are_the_same(name: str, request: Request, tmp_path: Path) -> None:
    source, file, written = WITH_IDS[name]
    where = write(tmp_path / file, written([request, request]))

    first, second = imported(source, where)

    assert (first.id, second.id) == ("mine-1", "mine-2")
    assert first.reply.tolist() == second.reply.tolist() == request.reply.tolist()
    assert len(first.prompt) == len(request.prompt)
    assert first.prompt.tolist() == request.prompt.tolist() or source == "vllm-vcr"


@pytest.mark.parametrize("name", [name for name in WITH_IDS if name != "vllm-vcr"])
def test_a_trace_goes_through_another_format_and_back(name: str, tmp_path: Path) -> None:
    source, file, written = WITH_IDS[name]
    arrives = source == "llmservingsim"
    mine = [A, B] if arrives else [replace(one, arrival_s=None) for one in (A, B)]

    back = imported(source, write(tmp_path / file, written(mine)))
    traces.write(tmp_path / "back.jsonl", {"model": "m"}, back)

    assert traces.load(tmp_path / "back.jsonl").requests == tuple(mine)


def test_how_a_capture_ended_is_kept_and_its_prompt_is_unlike_anything_said(tmp_path: Path) -> None:
    ended = [
        A,
        Request.of("b", [6, 6, 6], [7, 2**31 - 1, 9], "length"),
        Request.of("c", [6], [7], "guard"),
    ]

    back = imported("vllm-vcr", write(tmp_path / "mine.jsonl", vllm_vcr(ended)))

    assert [one.finish for one in back] == ["stop", "length", "guard"]
    assert [len(one.prompt) for one in back] == [3, 3, 1]
    assert {one.tags for one in back} == {("prompt-unknown",)}
    for one in back:
        prompt, reply = said(one)
        assert len(set(prompt)) == len(prompt)
        assert not set(prompt) & set(reply)


def test_a_capture_may_do_without_its_first_line_and_be_packed(tmp_path: Path) -> None:
    lines = vllm_vcr([A, B]).splitlines(keepends=True)
    packed = tmp_path / "mine.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(lines[1:]).encode()))

    assert [said(one)[1] for one in imported("vllm-vcr", str(packed))] == [[4, 5], [7, 8, 9]]


def test_requests_come_in_order_of_arrival_from_the_first_one_on(tmp_path: Path) -> None:
    late = [replace(one, arrival_s=at_s) for one, at_s in ((A, 30.5), (B, 10.0), (A, 10.25))]

    back = imported("llmservingsim", write(tmp_path / "mine.jsonl", llmservingsim(late)))

    assert [(one.id, one.arrival_s) for one in back] == [("mine-2", 0.0), ("mine-3", 0.25), ("mine-1", 20.5)]


def test_the_requests_of_a_session_have_no_arrival_and_stay_as_they_came(tmp_path: Path) -> None:
    session = {
        "session_id": "s",
        "arrival_time_ns": 5,
        "sub_requests": [
            {"input_tok_ids": [1], "output_tok_ids": [2, 3], "tool_duration_ns": 7},
            {"input_tok_ids": [1, 2, 3], "output_tok_ids": [4]},
        ],
    }
    alone = {"input_tok_ids": [9], "output_tok_ids": [8], "arrival_time_ns": 0}

    back = imported("llmservingsim", write(tmp_path / "mine.jsonl", json_lines([session, alone])))

    assert [(one.id, said(one), one.arrival_s) for one in back] == [
        ("mine-1-1", ([1], [2, 3]), None),
        ("mine-1-2", ([1, 2, 3], [4]), None),
        ("mine-2", ([9], [8]), None),
    ]


def test_some_arrivals_are_none() -> None:
    found = [Exchange("f:1", "a", Ids([1], [2]), arrival_s=3.0), Exchange("f:2", "b", Ids([1], [2]))]

    assert [(one.id, one.arrival_s) for one in by_arrival(found)] == [("a", None), ("b", None)]


@pytest.mark.parametrize(
    ("reply", "finish", "max_tokens", "kept", "ended"),
    [
        ([5, 6], None, None, [5, 6], "stop"),
        ([5, 6], None, 2, [5, 6], "length"),
        ([5, 6], None, 3, [5, 6], "stop"),
        ([5, 6, END], None, None, [5, 6], "stop"),
        ([5, 6, END], "stop", None, [5, 6], "stop"),
        # Told to go on, an engine ends at the limit whatever the last id is.
        ([5, 6, END], "length", 3, [5, 6, END], "length"),
        ([5, 6], "guard", None, [5, 6], "guard"),
    ],
)
def test_the_end_of_a_reply_is_what_the_file_the_last_id_or_the_limit_says(
    reply: list[int], finish: Any, max_tokens: int | None, kept: list[int], ended: str
) -> None:
    one = exchange.request(Exchange("f:1", "a", Ids([1], reply), finish), Letters(), max_tokens)

    assert one is not None
    assert (one.reply.tolist(), one.finish) == (kept, ended)


@pytest.mark.parametrize("silent", [Ids([1], []), Ids([1], [END]), Text("a", "")])
def test_a_reply_without_a_token_is_no_request(silent: Ids | Text) -> None:
    assert exchange.request(Exchange("f:1", "a", silent), Letters(), None) is None


def test_without_a_tokenizer_an_id_is_only_an_id() -> None:
    one = exchange.request(Exchange("f:1", "a", Ids([1], [5, END])), None, None)

    assert one is not None
    assert one.reply.tolist() == [5, END]


@pytest.mark.parametrize(("source", "prompt"), [("pairs", "uhia"), ("arctic-inference", "^hi")])
@pytest.mark.parametrize("kind", ["lines", "list", "columns", "csv"])
def test_pairs_of_text_are_read_from_several_kinds_of_file(source: str, prompt: str, kind: str, tmp_path: Path) -> None:
    rows = [{"prompt": "hi", "response": "ho\nho"}, {"prompt": "hi", "response": "[1, 2]"}]
    texts = {
        "lines": json_lines(rows),
        "list": json.dumps(rows, indent=2),
        "columns": pd.DataFrame(rows).to_json(),
        "csv": csv_text(["response", "prompt"], [["ho\nho", "hi"], ["[1, 2]", "hi"]]),
    }
    file = write(tmp_path / f"mine.{'csv' if kind == 'csv' else 'json'}", texts[kind])

    assert in_text(source, file) == [
        ("mine-1", prompt, "ho\nho"),
        ("mine-2", prompt, "[1, 2]"),
    ]


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.csv", csv_text(["a", "question", "answer"], [["-", "[1, 2]", "[3]"]]))

    assert [said(one) for one in imported("pairs", file, columns=("question", "answer"))] == [([1, 2], [3])]


def test_a_long_prompt_fits_a_cell(tmp_path: Path) -> None:
    prompt = [*range(40_000)]

    [request] = imported("pairs", write(tmp_path / "mine.csv", csv_text(COLUMNS, [[prompt, [1]]])))

    assert request.prompt.tolist() == prompt


def test_every_answer_of_a_conversation_is_a_request(tmp_path: Path) -> None:
    def turns(*said: tuple[str, str]) -> dict[str, object]:
        return {"id": "x", "conversations": [{"from": who, "value": what} for who, what in said]}

    talks = [
        turns(("system", "S"), ("human", "Q"), ("gpt", "A"), ("user", "R"), ("chatgpt", "B")),
        turns(("gpt", "cut off"), ("human", "Q"), ("gpt", "A")),
        turns(("human", "Q")),
    ]

    assert in_text("sharegpt", write(tmp_path / "mine.json", json.dumps(talks, indent=1))) == [
        ("mine-1-1", "sSuQa", "A"),
        ("mine-1-2", "sSuQaAuRa", "B"),
        ("mine-2-1", "uQa", "A"),
    ]


def test_arrivals_are_read_in_seconds(tmp_path: Path) -> None:
    mooncake = write(
        tmp_path / "m.jsonl", '{"timestamp": 1500, "input_length": 9, "output_length": 5, "hash_ids": [0]}\n\n'
    )
    azure = write(
        tmp_path / "a.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:17:03.9799600,4808,10\r\n"
        "2023-11-16 18:17:04.0319600,110,27\r\n"
        "2023-11-16 18:17:05+00:00,1,1",
    )

    first_s, *later_s = ARRIVALS["azure"](azure)
    assert list(ARRIVALS["mooncake"](mooncake)) == [1.5]
    assert [round(at_s - first_s, 6) for at_s in later_s] == [0.052, 1.02004]


def test_arrivals_are_given_in_turn_as_often_as_there_are_some() -> None:
    timed = arrivals.given([12.0, 10.0, 10.5, 19.0, 11.0], [A, B])

    assert [(one.id, said(one), one.arrival_s) for one in timed] == [
        ("mine-1", said(A), 0.0),
        ("mine-2", said(B), 0.5),
        ("mine-1-2", said(A), 1.0),
        ("mine-2-2", said(B), 2.0),
        ("mine-1-3", said(A), 9.0),
    ]


def test_no_arrival_takes_the_name_of_a_request_that_is_there() -> None:
    named = [replace(A, id=name) for name in ("a", "a-2", "a-3")]

    assert [one.id for one in arrivals.given(range(8), named)] == [
        *("a", "a-2", "a-3"),
        *("a-4", "a-2-2", "a-3-2"),
        *("a-5", "a-2-3"),
    ]


def test_a_text_that_looks_like_ids_is_one_among_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.csv", csv_text(COLUMNS, [["sorted([2, 1])?", "[1, 2]"], ["[]", "[3]"]]))

    assert in_text("pairs", file) == [("mine-1", "usorted([2, 1])?a", "[1, 2]"), ("mine-2", "u[]a", "[3]")]


def test_a_conversation_is_messages() -> None:
    assert Letters().chat([Message("user", "Q")]) == Letters().reply("uQa")
