"""Whether a file is there, what is in it, and how one is replaced."""

from __future__ import annotations

import gzip
import secrets
import zlib
from contextlib import suppress
from pathlib import Path

from traces.errors import TraceError, place


def exists(path: Path) -> bool:
    """Return whether anything is there; from Python 3.14 on `Path.exists` also says no where it cannot tell.

    Raises:
        OSError: it cannot be told, as of a name that is too long.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def beside(path: Path) -> Path:
    """Return a new name in a file's folder, to write first; a short one: the file's own may be as long as names get."""
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def write_whole(path: Path, text: str) -> None:
    """Write a text file as UTF-8, or leave what is there as it was.

    Raises:
        OSError: it cannot be written.
    """
    written = beside(path)
    try:
        written.write_text(text, encoding="utf-8", newline="\n")
        written.replace(path)
    finally:
        with suppress(OSError):
            written.unlink(missing_ok=True)


def read_bytes(file: str) -> bytes:
    """Return what a file holds, plain or gzip.

    Raises:
        TraceError: the file cannot be read.
    """
    try:
        data = Path(file).read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{place(file)}: the gzip data is cut or corrupt ({error})") from error
    except OSError as error:
        raise TraceError(f"{place(file)}: cannot be read ({error.strerror or error})") from error
