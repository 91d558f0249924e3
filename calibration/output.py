"""Where `record` puts what it kept: one trace, or a directory of one trace for each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import traces
from traces import Request, TraceError


@dataclass(frozen=True)
class Output:
    """What `-o` was given; a directory if it ends in a slash or is one."""

    where: str
    """The path as typed."""

    force: bool = False
    """Whether files that are there already may be replaced."""

    @property
    def split(self) -> bool:
        """Whether every request gets a file of its own."""
        return self.where.endswith("/") or Path(self.where).is_dir()

    def path(self, name: str) -> Path:
        """Return the file of the request of that id."""
        return Path(self.where) / f"{name}.jsonl" if self.split else Path(self.where)

    def check(self, names: Sequence[str]) -> None:
        """Refuse what could not be written later, before any time is spent.

        Raises:
            TraceError: a file is there already, or its directory is not.
        """
        if not self.where:
            raise TraceError("-o: names no file (got '')")
        taken = next((path for path in map(self.path, names) if path.exists()), None)
        if taken is not None and not self.force:
            raise TraceError(f"{taken}: is there already; --force overwrites it")
        parent = Path(self.where) if self.split else Path(self.where).parent
        try:
            if self.split:
                parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(f"{self.where}: cannot be made a directory ({error.strerror})") from error
        if not parent.is_dir():
            raise TraceError(f"{self.where}: cannot be written (no directory {str(parent)!r})")

    def write(self, header: Mapping[str, object], requests: Sequence[Request]) -> None:
        """Write the traces of requests that are all there.

        Raises:
            TraceError: a file cannot be written.
        """
        for request in requests if self.split else []:
            traces.write(self.path(request.id), header, [request], force=self.force)
        if not self.split:
            traces.write(self.path(""), header, requests, force=self.force)

    def add(self, header: Mapping[str, object], requests: Sequence[Request]) -> None:
        """Write what the last of the requests adds: a trace of its own, or the one of them all again.

        Raises:
            TraceError: a file cannot be written.
        """
        mine = not self.split and len(requests) > 1  # what stands there is what was written before
        Output(self.where, self.force or mine).write(header, requests[-1:] if self.split else requests)
