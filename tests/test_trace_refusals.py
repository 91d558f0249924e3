"""What a trace file may not hold, and the words in which it is refused."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path

import pytest

from tests.trace_lines import GOOD, HEADER, KNOWN, line, refusal
from traces import find, load, open_trace

FIRST_LINES = {
    "no bytes": (b"", ": is empty; a trace begins with a header line"),
    "a request first": (
        GOOD,
        ":1: header must have the format 'breakeven-trace/1' (got only ['id', 'prompt', 'reply', 'finish'])",
    ),
    "a list": (b"[1]\n", ":1: header must be an object (got [1])"),
    "null": (b"null\n", ":1: header must be an object (got None)"),
    "a later format": (
        b'{"format": "breakeven-trace/2"}\n',
        ":1: format must be 'breakeven-trace/1' (got 'breakeven-trace/2')",
    ),
    "a format without a name": (b'{"format": 1, "model": 2}\n', ":1: format must be 'breakeven-trace/1' (got 1)"),
    "no model": (b'{"format": "breakeven-trace/1"}\n', ":1: header must name the model (got only ['format'])"),
    "an empty model": (
        b'{"format": "breakeven-trace/1", "model": ""}\n',
        ":1: model must be a non-empty string (got '')",
    ),
    "a model of another type": (
        b'{"format": "breakeven-trace/1", "model": ["m"]}\n',
        ":1: model must be a non-empty string (got ['m'])",
    ),
    "a model UTF-8 cannot hold": (
        b'{"format": "breakeven-trace/1", "model": "\\ud800"}\n',
        ":1: model must be text that UTF-8 can hold (got the lone surrogate '\\ud800')",
    ),
    "provenance UTF-8 cannot hold": (
        HEADER.replace(b"}", b', "by": "\\udfff"}'),
        ":1: header must be text that UTF-8 can hold (got the lone surrogate '\\udfff')",
    ),
    "NaN deep in the provenance": (
        HEADER.replace(b"}", b', "by": {"t": [NaN]}}'),
        ":1: not JSON: a number must be finite (got NaN)",
    ),
    "a key twice deep in the provenance": (
        HEADER.replace(b"}", b', "by": [{"t": 1, "t": 1}]}'),
        ":1: key 't' must stand once in an object (got it twice)",
    ),
    "a byte order mark": (
        b"\xef\xbb\xbf" + HEADER + GOOD,
        ":1: not plain UTF-8 (got a byte order mark); save the file without one",
    ),
    "UTF-16": ('{"format"'.encode("utf-16-le").join([b"\xff\xfe", b"\n"]), ":1: not UTF-8 (got 0xff at byte 1)"),
    "a header alone": (HEADER, ": holds no requests"),
    "a cut header": (
        HEADER[:-1],
        ':1: the last line must end with a newline; the file is cut (it ends in \'ce/1", "model": "m"}\')',
    ),
}


SHORTENED = {
    "a string": (
        line(finish="x" * 10**6),
        f":3: finish must be one of stop, length, guard (got '{'x' * 27}...{'x' * 28}')",
    ),
    "an id again": (
        line(id="x" * 10**6) * 2,
        f":4: id must be unique in its trace (got '{'x' * 27}...{'x' * 28}' again)",
    ),
    "a key": (line(**{"x" * 10**6: 1}), f":3: unknown key '{'x' * 27}...{'x' * 28}' (known: {KNOWN})"),
    "a list": (
        line(max_tokens=list(range(10**5))),
        ":3: max_tokens must be an integer >= 1 (got [0, 1, 2, 3, 4, 5, ...])",
    ),
    "a list in a list": (
        line(text=[["x" * 10**5] * 9] * 9),
        f":3: text must be a string (got [['{'x' * 27}...{'x' * 28}', '{'x' * 12}...)",
    ),
    "many keys": (
        line(text={str(i): i for i in range(10**5)}),
        ":3: text must be a string (got {'0': 0, '1': 1, '10': 10, '100': 100, ...})",
    ),
    "no JSON": (b"x" * 10**6 + b"\n", f":3: not JSON: expecting value at column 1 (got '{'x' * 20}')"),
    "a deep value": (line(text=0).replace(b"0", b"[" * 500 + b"]" * 500), ":3: text must be a string (got [[[...]]])"),
    "a deeper value": (
        b"[" * 10**5 + b"]" * 10**5 + b"\n",
        f":3: not JSON that can be read: nested too deeply (got '{'[' * 27}...{']' * 28}')",
    ),
    "an integer": (
        line(text=0).replace(b"0", b"7" * 5000),
        ':3: not JSON that can be read: an integer of more than 4300 digits (got \'{"id": "b", "prompt": [1, 2...'
        + "7" * 27
        + "}')",
    ),
    "blanks": (
        b" " * 10**6 + b"\n",
        f":3: a line must hold a JSON object (got the blank line '{' ' * 27}...{' ' * 28}')",
    ),
}


@pytest.mark.parametrize(("content", "message"), FIRST_LINES.values(), ids=FIRST_LINES)
def test_a_file_that_begins_badly_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)

    assert refusal(lambda: load(path)) == f"{path}{message}"


@pytest.mark.parametrize(("content", "message"), SHORTENED.values(), ids=SHORTENED)
def test_a_long_value_is_shortened(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(HEADER + GOOD + content)

    assert refusal(lambda: load(path)) == f"{path}{message}"


def test_the_good_lines_before_a_bad_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(HEADER + GOOD + b"{}\n")
    ids = []

    def read() -> None:
        ids.extend([request.id for request in [next(requests)]])
        next(requests)

    requests = iter(open_trace(path))

    assert refusal(read) == f"{path}:3: missing key 'id', 'prompt', 'reply', 'finish' (got no keys)"
    assert ids == ["a"]


def test_gzip_that_is_cut_is_refused_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    whole = gzip.compress(HEADER + GOOD + line(), mtime=0)
    message = "the gzip data ends too early; the file is cut"

    for length in range(2, len(whole)):
        path.write_bytes(whole[:length])
        assert refusal(lambda: load(path)) in {f"{path}:{number}: {message}" for number in (1, 2, 3, 4)}


def test_corrupt_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    whole = gzip.compress(HEADER + GOOD, mtime=0)

    path.write_bytes(whole[:10] + b"\xff" * 20)
    assert refusal(lambda: load(path)) == (
        f"{path}:1: the gzip data is corrupt (Error -3 while decompressing data: invalid block type)"
    )

    path.write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    assert refusal(lambda: load(path)).startswith(f"{path}:3: the gzip data is corrupt (CRC check failed 0x0 != ")

    path.write_bytes(whole + b"more")
    assert refusal(lambda: load(path)) == f"{path}:3: the gzip data is corrupt (Not a gzipped file (b'mo'))"


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(65):
            file.write(bytes(2**20))

    assert refusal(lambda: load(path)) == f"{path}:1: a line must be at most 64 MiB long (got more)"


def test_a_trace_of_no_such_name_is_refused() -> None:
    message = refusal(lambda: load("no-such-trace.jsonl"))

    assert message.startswith("no trace named 'no-such-trace.jsonl' (shipped: ")
    assert refusal(lambda: find("")).startswith("no trace named '' (shipped: ")
    assert refusal(lambda: find("a\nb")).startswith(r"no trace named 'a\nb' (shipped: ")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(lambda: load(tmp_path)) == f"{tmp_path}: is a folder; name one trace in it"


def test_a_name_that_no_file_can_have_is_refused() -> None:
    name = "x" * 300

    assert refusal(lambda: load(name)) == f"{name}: cannot be read (File name too long)"
    assert refusal(lambda: load("x/" * 10**6)) == (f"'{'x/' * 13}x...{'x/' * 14}': cannot be read (File name too long)")


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("t.jsonl")

        assert refusal(lambda: load("t.jsonl")).startswith("t.jsonl: cannot be read (")


def test_a_message_is_one_line_even_if_the_path_is_not(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.jsonl"
    path.write_bytes(HEADER + b"\n")

    assert refusal(lambda: load(path)) == f"{str(path)!r}:2: a line must hold a JSON object (got the blank line '')"
