"""A study in a file: Optuna's journal, with a lock that dies with its holder and an end that is always whole.

Optuna's own lock is a file that a killed process leaves behind for half a minute, and what it had half written spoils
every line after it. Here the system releases the lock, and whoever appends next cuts off what was not finished.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend


class Journal(JournalFileBackend):
    """The log of every study in one file."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it.

        Raises:
            OSError: it cannot be.
        """
        super().__init__(path)
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append entries, all of them or none.

        Raises:
            OSError: the disk does not take them.
        """
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with Path(self._path).open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = _whole(file.fileno())
            try:
                # No fsync: a killed process loses nothing that the system has, and one for each of the entries of a
                # trial would take longer than the trial.
                done = 0
                while done < len(lines):
                    done += os.pwrite(file.fileno(), lines[done:], end + done)
            except OSError:
                os.ftruncate(file.fileno(), end)
                raise


def _whole(file: int) -> int:
    """Cut off a last line that was not finished, and return where the next one begins."""
    end = os.lseek(file, 0, os.SEEK_END)
    if not end or os.pread(file, 1, end - 1) == b"\n":
        return end
    begin = end
    while begin and os.pread(file, 1, begin - 1) != b"\n":
        begin -= 1
    os.ftruncate(file, begin)
    return begin
