"""Which trace a word means: a file, a folder of files, or one of the traces that ship with the package."""

from __future__ import annotations

from pathlib import Path

from traces.errors import TraceError, place, suggestion
from traces.files import exists

_FOLDER = Path(__file__).with_name("shipped")
_PATTERNS = ("*.jsonl.gz", "*.jsonl")


def names() -> list[str]:
    """Return the names of the shipped traces, sorted."""
    return sorted(_shipped())


def find(where: str | Path) -> Path:
    """Return the file a word means: the one of that path if there is one, else the shipped trace of that stem.

    The stem is the last part of the path without `.gz` and `.jsonl`, so `story`, `story.jsonl` and
    `anywhere/story.jsonl.gz` all mean the shipped `story` where no such file is.

    Raises:
        TraceError: there is neither, or the path is a folder.
    """
    return locate(str(where))[1]


def expand(where: str | Path) -> list[str]:
    """Return the traces a word means: the trace files of a folder, sorted by name, or else the word alone.

    Raises:
        TraceError: a folder without trace files, or one that cannot be read.
    """
    folder = Path(where)
    if not str(where) or not _is_folder(folder):
        return [str(where)]
    try:
        files = _files(folder)
    except OSError as error:
        raise TraceError(f"{place(str(where))}: cannot be read ({error.strerror})") from error
    if not files and _stem(folder.name) in _shipped():
        return [str(where)]
    if not files:
        raise TraceError(f"{place(str(where))}: holds no traces (*.jsonl, *.jsonl.gz)")
    return [str(file) for file in files]


def locate(where: str) -> tuple[str, Path]:
    """Return what a report calls the trace a word means, and its file.

    Raises:
        TraceError: as for `find`.
    """
    path = Path(where)
    try:
        there = where != "" and exists(path)
    except OSError as error:
        raise TraceError(f"{place(where)}: cannot be read ({error.strerror})") from error
    shipped = _shipped()
    stem = _stem(path.name)
    if there and path.is_dir() and stem not in shipped:
        raise TraceError(f"{place(where)}: is a folder; name one trace in it")
    if there and not path.is_dir():
        return where, path
    if stem in shipped:
        return stem, shipped[stem]
    raise TraceError(
        f"no trace named {where!r} (shipped: {', '.join(sorted(shipped)) or 'none'}){suggestion(stem, shipped)}"
    )


def _shipped() -> dict[str, Path]:
    return {_stem(file.name): file for file in _files(_FOLDER)}


def _stem(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".jsonl")


def _files(folder: Path) -> list[Path]:
    # Names with a dot in front are not data: the Finder leaves a `._story.jsonl` beside a `story.jsonl`.
    found = (file for pattern in _PATTERNS for file in folder.glob(pattern))
    return sorted(file for file in found if not file.name.startswith(".") and file.is_file())


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # too long a name, say: whoever opens it says so
        return False
