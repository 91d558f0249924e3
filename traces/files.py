"""Whether a file is there, and what is in it."""

from __future__ import annotations

import gzip
import zlib
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
