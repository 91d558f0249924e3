"""Whether a file is there."""

from __future__ import annotations

from pathlib import Path


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
