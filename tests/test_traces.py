"""What a trace file says is what is read, and what is written is read back."""

from __future__ import annotations

import copy
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces import Request, load, write

HEADER = {"model": "m"}
EXAMPLE = """\
{"format": "breakeven-trace/1", "model": "tiny", "seed": 7, "engine": {"name": "none"}}
{"id": "edit_fn", "prompt": [1, 2, 3], "reply": [4, 5], "finish": "stop"}
{"id": "limited", "prompt": [1], "reply": [4, 5], "finish": "length", "tags": ["code", "long"]}
{"id": "stopped at the limit", "prompt": [1], "reply": [4, 5], "finish": "stop", "max_tokens": 2, "arrival_s": 0.5}
{"id": "Wörter", "prompt": [0], "reply": [2147483647], "finish": "guard", "eligible": false, "reason": "sampled", \
"pipelinable": false, "text": "naïve\\n", "margins": [0.1]}
"""
A = Request.of("a", [1, 2], [3], "stop")
B = Request.of("b", [1, 2], [3], "stop")

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
token_lists = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    reply = draw(token_lists)
    finish = draw(st.sampled_from(["stop", "length", "guard"]))
    eligible = draw(st.booleans())
    limits = st.just(len(reply)) if finish == "length" else st.integers(len(reply), len(reply) + 9)
    margins = st.lists(st.floats(0, width=32, allow_infinity=False), min_size=len(reply), max_size=len(reply))
    return Request.of(
        draw(strings.filter(bool)),
        draw(token_lists),
        reply,
        finish,
        max_tokens=draw(st.none() | limits),
        arrival_s=draw(st.none() | st.floats(0, allow_infinity=False)),
        eligible=eligible,
        reason=None if eligible else draw(st.none() | strings),
        pipelinable=draw(st.booleans()),
        tags=tuple(draw(st.lists(strings, max_size=3))),
        text=draw(st.none() | strings),
        margins=draw(st.none() | margins),
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=5,
)
headers = st.builds(
    lambda model, more: {**more, "format": "breakeven-trace/1", "model": model},
    strings.filter(bool),
    st.dictionaries(strings, values, max_size=3),
)


def test_the_lines_of_the_format_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(EXAMPLE, encoding="utf-8")

    trace = load(str(path))

    assert trace.source == str(path)
    assert trace.header["model"] == "tiny"
    assert trace.header["engine"] == {"name": "none"}
    assert trace.requests == (
        Request.of("edit_fn", [1, 2, 3], [4, 5], "stop"),
        Request.of("limited", [1], [4, 5], "length", max_tokens=2, tags=("code", "long")),
        Request.of("stopped at the limit", [1], [4, 5], "stop", max_tokens=2, arrival_s=0.5),
        Request.of(
            "Wörter",
            [0],
            [2147483647],
            "guard",
            eligible=False,
            reason="sampled",
            pipelinable=False,
            text="naïve\n",
            margins=[np.float32(0.1)],
        ),
    )


def test_values_left_out_have_their_defaults() -> None:
    request = Request.of("a", [1], [2, 3], "stop")

    assert (request.max_tokens, request.arrival_s, request.eligible, request.reason) == (None, None, True, None)
    assert (request.pipelinable, request.tags, request.text, request.margins) == (True, (), None, None)


def test_the_limit_is_implied_only_by_a_reply_it_ended() -> None:
    limits = {finish: Request.of("a", [1], [2, 3], finish).max_tokens for finish in ("stop", "length", "guard")}

    assert limits == {"stop": None, "length": 2, "guard": None}


def test_a_request_that_is_not_eligible_needs_no_reason() -> None:
    assert Request.of("a", [1], [2], "stop", eligible=False).reason is None


def test_arrays_are_int32_read_only_and_their_own() -> None:
    mine = np.array([1, 2, 3], np.int64)
    request = Request.of("a", mine, [np.uint8(4)], "stop", margins=np.array([2.5]))
    mine[0] = 9

    assert request.prompt.tolist() == [1, 2, 3]
    assert request.prompt.dtype == np.int32
    assert request.reply.dtype == np.int32
    assert request.margins is not None
    assert request.margins.dtype == np.float32
    for array in (request.prompt, request.reply, request.margins):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@given(requests())
def test_a_copied_request_is_equal_and_read_only(request: Request) -> None:
    for again in (copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
        assert again == request
        assert hash(again) == hash(request)
        assert not again.prompt.flags.writeable


def test_requests_that_differ_in_a_token_are_not_equal() -> None:
    assert Request.of("a", [1], [2], "stop") != Request.of("a", [1], [3], "stop")
    assert Request.of("a", [1], [2], "stop") != "a"


def test_a_file_is_written_as_the_format_shows(tmp_path: Path) -> None:
    original, path = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    original.write_text(EXAMPLE, encoding="utf-8")
    trace = load(original)

    count = write(path, trace.header, trace.requests)

    assert count == 4
    assert path.read_text(encoding="utf-8") == EXAMPLE


def test_defaults_and_implied_limits_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    plain = Request.of("a", [1], [2], "length", max_tokens=1, arrival_s=None, eligible=True, tags=[], margins=None)

    write(path, HEADER, [plain])

    assert path.read_text().splitlines()[1] == '{"id": "a", "prompt": [1], "reply": [2], "finish": "length"}'


def test_the_format_is_put_first(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    write(path, {"model": "m", "when": "2026-11-29"}, [A])

    assert path.read_text().splitlines()[0] == '{"format": "breakeven-trace/1", "model": "m", "when": "2026-11-29"}'


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
@given(header=headers, listed=st.lists(requests(), min_size=1, max_size=4, unique_by=lambda request: request.id))
def test_what_is_written_is_read_back_and_written_twice_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, header: dict[str, Any], listed: list[Request]
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    first, second = folder / name, folder / f"again-{name}"

    assert write(first, header, iter(listed)) == len(listed)
    trace = load(first)
    write(second, trace.header, trace.requests)

    assert trace.header == header
    assert list(trace.requests) == listed
    assert first.read_bytes() == second.read_bytes()


def test_gzip_is_known_by_its_first_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed.jsonl", tmp_path / "plain.jsonl.gz"
    packed.write_bytes(gzip.compress(EXAMPLE.encode()))
    plain.write_bytes(EXAMPLE.encode())

    assert load(packed).requests == load(plain).requests


def test_gzip_holds_neither_a_time_nor_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"

    write(path, HEADER, [A])

    # RFC 1952: bytes 3 (flags: no name) and 4 to 7 (time).
    assert path.read_bytes()[3:8] == bytes(5)


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(EXAMPLE.encode().replace(b"\n", b"\r\n"))

    assert [request.id for request in load(path).requests][:2] == ["edit_fn", "limited"]
