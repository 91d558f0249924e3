"""Traces are read and written request by request, in a memory that does not grow with them."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from traces import Request, load, open_trace, write

HEADER = {"model": "m"}
A = Request.of("a", [1, 2], [3], "stop")
B = Request.of("b", [1, 2], [3], "stop")


def many(count: int) -> Iterator[Request]:
    return (Request.of(str(i), [1, 2], [3, 4], "stop", text="x" * 3000) for i in range(count))


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_long_trace_is_written_and_read_in_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name

    written = peak_bytes(lambda: write(path, HEADER, many(5_000)))
    read = peak_bytes(lambda: sum(1 for _ in open_trace(path)))

    # 5,000 requests are 15.4 MB of JSON; both sides keep only their ids, about 0.6 MB.
    assert written < 2e6
    assert read < 2e6


def test_the_header_is_there_before_the_requests_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"format": "breakeven-trace/1", "model": "m"}\nno JSON\n')

    with open_trace(path) as reader:
        assert (reader.source, reader.header["model"]) == (str(path), "m")


def test_a_reader_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, HEADER, [A, B])
    reader = open_trace(path)

    assert list(reader) == [A, B]
    with pytest.raises(RuntimeError, match="is read already; open it again to read it twice"):
        iter(reader)


def test_a_reader_that_is_left_early_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, HEADER, [A, B])

    # A file left open would be a ResourceWarning, which is an error here.
    for request in open_trace(path):
        assert request == A
        break
    with open_trace(path) as reader:
        assert next(iter(reader)) == A
    open_trace(path)

    reader.close()


def test_a_trace_can_come_through_a_pipe(tmp_path: Path) -> None:
    path, pipe = tmp_path / "t.jsonl", tmp_path / "pipe"
    write(path, HEADER, [A, B])
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(path.read_bytes(),))
    writer.start()

    assert load(pipe).requests == (A, B)
    writer.join()


def test_requests_are_written_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    sizes = []

    def watched() -> Iterator[Request]:
        for request in many(200):
            sizes.append(sum(file.stat().st_size for file in tmp_path.iterdir()))
            assert not path.exists()
            yield request

    write(path, HEADER, watched())

    assert sizes[0] == 0
    assert sizes[-1] > 600_000
