"""A study in a file: Optuna's journal, with a lock that dies with its holder and an end that is always whole.

Optuna's own lock is a file that a killed process leaves behind for half a minute, and what it had half written spoils
every line after it. Here the system releases the lock, and whoever appends next cuts off what was not finished.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optuna.exceptions import OptunaError, StorageInternalError
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend


class SpoiltError(StorageInternalError):
    """A journal that holds something else than the entries of studies."""


class Journal(JournalFileBackend):
    """The log of every study in one file."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it.

        Raises:
            OSError: it cannot be.
        """
        super().__init__(path)
        self._path = path

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Read the entries from one on.

        Raises:
            OSError: the file cannot be read.
            SpoiltError: a line is no JSON, or lines that were there are gone.
        """
        self._check_length(Path(self._path).stat().st_size)
        try:
            yield from super().read_logs(log_number_from)
        except (ValueError, RecursionError):
            raise SpoiltError(f"line {len(self._log_number_offset)} is no entry") from None

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append entries, all of them or none.

        Raises:
            OSError: the disk does not take them.
            SpoiltError: lines that were there are gone.
        """
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with Path(self._path).open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = _whole(file.fileno())
            self._check_length(end)
            try:
                # No fsync: a killed process loses nothing that the system has, and one for each of the entries of a
                # trial would take longer than the trial.
                done = 0
                while done < len(lines):
                    done += os.pwrite(file.fileno(), lines[done:], end + done)
            except OSError:
                os.ftruncate(file.fileno(), end)
                raise

    def _check_length(self, size: int) -> None:
        known = max(self._log_number_offset.values())
        if size < known:
            raise SpoiltError(f"it was cut from {known} bytes to {size}")


class Journaled(JournalStorage):
    """The studies of a journal, at every reading of which somebody may have written anything into it."""

    def _sync_with_backend(self) -> None:
        try:
            super()._sync_with_backend()
        except (OptunaError, OSError):
            raise
        except Exception:  # whatever Optuna runs into: an entry without its fields, or with others in them
            raise SpoiltError(f"line {self._replay_result.log_number_read} is no entry") from None


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
