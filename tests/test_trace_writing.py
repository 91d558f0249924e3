"""A trace is written whole or not at all, and nothing is written that could not be read back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from traces import Request, TraceError, load, write

HEADER = {"model": "m"}
A = Request.of("a", [1, 2], [3], "stop")
B = Request.of("b", [1, 2], [3], "stop")


def leftovers(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def broken(error: BaseException) -> Iterator[Request]:
    yield A
    raise error


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "engine is gone"), RuntimeError("bug")], ids=type)
def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path, name: str, error: BaseException) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    with pytest.raises(type(error)) as caught:
        write(path, HEADER, broken(error))

    assert caught.value is error
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == [name]


def test_requests_finished_before_an_interrupt_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def recorder() -> Iterator[Request]:
        try:
            yield from broken(KeyboardInterrupt())
        except KeyboardInterrupt:
            return

    assert write(path, HEADER, recorder()) == 1
    assert load(path).requests == (A,)


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_full_disk_is_reported_and_keeps_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    # A limit on the size of files stands for the full disk; it holds for a process, so it needs one of its own.
    program = f"""
import resource
from traces import Request, TraceError, write
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
requests = (Request.of(str(i), [i * i % 9973 for i in range(i, i + 2000)], [1], "stop") for i in range(1000))
try:
    write({str(path)!r}, {{"model": "m"}}, requests)
except TraceError as error:
    print(error)
"""

    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"{path}: cannot be written (File too large)\n", "")
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == [name]


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    places = {
        tmp_path / "none" / "t.jsonl": "No such file or directory",
        tmp_path / "file" / "t.jsonl": "Not a directory",
        tmp_path / ("x" * 300): "File name too long",
        tmp_path: "not a regular file",
        Path("/dev/null"): "not a regular file",
    }

    for path, reason in places.items():
        with pytest.raises(TraceError) as caught:
            write(path, HEADER, [A])
        assert str(caught.value) == f"{path}: cannot be written ({reason})"
    assert leftovers(tmp_path) == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_bytes(b"old")
    link.symlink_to(target)

    write(link, HEADER, [A])

    assert link.is_symlink()
    assert load(target).requests == (A,)


LOOP: list[Any] = []
LOOP.append(LOOP)
UNWRITABLE: dict[str, tuple[dict[Any, Any], list[Request], str]] = {
    "no requests": (HEADER, [], "not written, since there are no requests"),
    "an id twice": (HEADER, [A, B, A], "id must be unique in its trace (got 'a' again)"),
    "no model": ({"by": "me"}, [A], "header must name the model (got only ['format', 'by'])"),
    "another format": ({"format": "x/2", "model": "m"}, [A], "format must be 'breakeven-trace/1' (got 'x/2')"),
    "a path": (
        {"model": "m", "by": Path("x")},
        [A],
        "header must be JSON (Object of type PosixPath is not JSON serializable)",
    ),
    "a loop": ({"model": "m", "by": LOOP}, [A], "header must be JSON (Circular reference detected)"),
    "a surrogate": (
        {"model": "m", "by": "\ud800"},
        [A],
        "header must be text that UTF-8 can hold (got the lone surrogate '\\ud800')",
    ),
    "1 and its text": ({"model": "m", 1: 2, "1": 3}, [A], "key '1' must stand once in an object (got it twice)"),
}


@pytest.mark.parametrize(("header", "listed", "message"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_could_not_be_read_back_is_not_written(
    tmp_path: Path, header: dict[Any, Any], listed: list[Request], message: str
) -> None:
    path = tmp_path / "t.jsonl"

    with pytest.raises(TraceError) as caught:
        write(path, header, listed)

    assert str(caught.value) == f"{path}: {message}"
    assert leftovers(tmp_path) == []


def test_numbers_that_json_has_not_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="header must be JSON"):
        write(tmp_path / "t.jsonl", {"model": "m", "t": float("nan")}, [A])


def test_a_file_that_appeared_meanwhile_is_kept_without_force(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def requests() -> Iterator[Request]:
        path.write_text("somebody else's")
        yield Request.of("r", [1], [2], "stop")

    with pytest.raises(TraceError) as refused:
        write(path, {"model": "m"}, requests(), force=False)

    assert str(refused.value) == f"{path}: is there already; --force overwrites it"
    assert path.read_text() == "somebody else's"
    assert [file.name for file in tmp_path.iterdir()] == ["t.jsonl"]
