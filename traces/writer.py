"""Traces into files: written beside their place request by request, and moved there when they are whole."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from traces import files
from traces import header as headers
from traces.errors import TraceError, place
from traces.lines import LONGEST_LINE_BYTES
from traces.trace import Request, claim


def write(path: str | Path, header: Mapping[str, Any], requests: Iterable[Request], *, force: bool = True) -> int:
    """Write a trace, as gzip if the name ends in `.gz`, and return how many requests it holds.

    Requests are written as they come. If anything fails or interrupts, an older file of that name stays as it was.
    Equal requests give equal bytes.

    Args:
        path: The file; its folder must exist.
        header: `model` and provenance, all of it JSON; `format` is put first.
        requests: At least one, each with an id of its own.
        force: Whether a file that is there by the time the new one is whole may be replaced.

    Raises:
        TraceError: the file cannot be written, or could not be read back. What `requests` raises passes through.
    """
    where = place(str(path))
    target = _target(Path(path), where)
    beside = files.beside(target)
    try:
        count = _write_lines(beside, where, target.name.endswith(".gz"), _encoded(where, header, requests)) - 1
        with _reported(where):
            _place(beside, target, force)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return count


def _place(beside: Path, target: Path, force: bool) -> None:
    """Move a whole file to its place; without `force` only where nothing is by then."""
    if not force:
        try:
            os.link(beside, target)
            return
        except FileExistsError:
            raise
        except OSError:
            # A disk without hard links: all that is left is to look first.
            if target.exists():
                raise FileExistsError from None
    beside.replace(target)


def _target(path: Path, where: str) -> Path:
    with _reported(where):
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        # Moving a file over `/dev/null` would replace the device.
        if target.exists() and not target.is_file():
            raise TraceError(f"{where}: cannot be written (not a regular file)")
    return target


def _write_lines(beside: Path, where: str, packed: bool, lines: Iterator[bytes]) -> int:
    """Write lines to a new file and return how many; errors of the disk are reported, those of `lines` pass."""
    with _reported(where):
        raw = beside.open("xb")
    # No name and no time in the gzip header, so that equal traces are equal bytes.
    file: io.BufferedIOBase = gzip.GzipFile("", "wb", 6, raw, mtime=0) if packed else raw
    count = 0
    try:
        for line in lines:
            with _reported(where):
                file.write(line)
            count += 1
        with _reported(where):
            file.close()
            raw.close()
    finally:
        for opened in (file, raw):
            with suppress(OSError):  # closing writes again what a full disk refused before
                opened.close()
    return count


def _encoded(where: str, header: Mapping[str, Any], requests: Iterable[Request]) -> Iterator[bytes]:
    seen: set[str] = set()
    try:
        yield headers.line(header)
    except TraceError as error:
        raise TraceError(f"{where}: {error}") from None
    for request in requests:
        try:
            claim(request.id, seen)
            line = headers.encode(_object(request))
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from None
        if len(line) > LONGEST_LINE_BYTES:
            raise TraceError(f"{where}: request {request.id!r} must fit a line of {LONGEST_LINE_BYTES >> 20} MiB")
        yield line
    if not seen:
        raise TraceError(f"{where}: not written, since there are no requests")


def _object(request: Request) -> dict[str, Any]:
    """Return a request as its line holds it: keys in the format's order, those with their default left out."""
    implied = len(request.reply) if request.finish == "length" else None
    values: dict[str, tuple[Any, Any]] = {
        "max_tokens": (request.max_tokens, implied),
        "arrival_s": (request.arrival_s, None),
        "eligible": (request.eligible, True),
        "reason": (request.reason, None),
        "pipelinable": (request.pipelinable, True),
        "tags": (list(request.tags), []),
        "text": (request.text, None),
        # By way of text: a float32 then has the few digits that tell it apart, not those of its float64.
        "margins": (None if request.margins is None else [float(str(margin)) for margin in request.margins], None),
    }
    return {
        "id": request.id,
        "prompt": request.prompt.tolist(),
        "reply": request.reply.tolist(),
        "finish": request.finish,
        **{key: value for key, (value, default) in values.items() if value != default},
    }


@contextmanager
def _reported(where: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise TraceError(f"{where}: is there already; --force overwrites it") from error
    except OSError as error:
        raise TraceError(f"{where}: cannot be written ({error.strerror or error})") from error
