"""Recordings out of the logs of another engine: nothing is run, what was said is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibration.recording import Recorded
from traces.mlxcel_log import read_logs

SOURCES = ("mlxcel-log",)
"""What `record` can read instead of asking a model."""


def header(model: str, source: str, files: Sequence[str]) -> dict[str, object]:
    """Return the header of a trace that is made of logs; the model's name is the user's word."""
    return {"model": model, "source": source, "files": [Path(file).name for file in files]}


def import_all(files: Sequence[str], max_tokens: int | None) -> Recorded:
    """Return the runs of several logs as a recording.

    Args:
        files: the logs of the reference engine.
        max_tokens: the limit that the runs were given, in tokens.

    Raises:
        TraceError: a log cannot be read or contradicts itself, the limit, or the name of another.
    """
    return Recorded(tuple(run.request(max_tokens) for run in read_logs(files)), silent=(), interrupted=False)
