"""Where a replay keeps its raw rounds: one line a run, written when its repeat is done, so that it can be resumed.

The file is `rounds.jsonl` in the directory of `--save` (or packed as `rounds.jsonl.gz`, and unpacked to go on); see
docs/reference/replay-files.md. Without a directory everything stays in memory.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import operator
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from simulator.replay.errors import ReplayError
from simulator.replay.execution import Execution
from simulator.replay.parity import Comparison
from simulator.schedule import Schedule, read_codes

FORMAT = "breakeven-replay/1"
LONGEST_S = 1e6
"""No step takes this long."""
HEAD = f'{{"format": "{FORMAT}"'.encode()
"""How a file begins."""
DIGITS = 7
"""Decimal places of a time in seconds; clocks are no better than 0.1 microseconds."""

Key = tuple[str, int, str]
"""Request, repeat and arm."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run."""

    codes: str
    """Its event codes."""
    seconds: tuple[float, ...]
    """One for each code."""
    paused_rounds: int
    shadow_confirmations: int
    reply: tuple[int, ...] = ()
    """The tokens it emitted; empty when they were forced."""

    @property
    def schedule(self) -> Schedule:
        """What it did."""
        return Schedule(read_codes(self.codes), self.paused_rounds, self.shadow_confirmations)


class Store:
    """The runs of one session by request, repeat and arm."""

    def __init__(self, directory: Path | None = None) -> None:
        self._path = directory / "rounds.jsonl" if directory else None
        self._setup: dict[str, Any] = {}
        self._forget()

    def _forget(self) -> None:
        self.lines: dict[Key, Line] = {}
        self.comparisons: dict[tuple[str, str, str], Comparison] = {}
        """By request, arm and a hash of the replies that were compared."""
        self.prefills: dict[str, float] = {}
        self.engine: dict[str, Any] = {}
        self._begun = False

    def begin(self, setup: Mapping[str, Any]) -> None:
        """Read what an earlier session kept; nothing is written before there is something to keep.

        Raises:
            ReplayError: what is there belongs to another setup, or cannot be read.
        """
        self._setup = json.loads(json.dumps(setup))
        self._load(self._read())

    def _load(self, text: str) -> None:
        self._forget()
        if not text:
            return
        self._begun = True
        head, *rest = [self._parsed(number, line) for number, line in enumerate(text[:-1].split("\n"), start=1)]
        if head.get("format") != FORMAT:
            raise ReplayError(f"{self._path}: format must be {FORMAT!r} (got {head.get('format')!r})")
        kept = head.get("setup")
        if not isinstance(kept, dict):
            raise ReplayError(f"{self._path}:1: setup must be an object (got {kept!r})")
        for name, value in self._setup.items():
            before = kept.get(name, value)  # one that is older than a name says nothing of it
            if before != value:
                raise ReplayError(f"{self._path}: was begun with another {name} ({before!r}, now {value!r})")
        for number, entry in enumerate(rest, start=2):
            try:
                self._take(entry)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
                raise ReplayError(f"{self._path}:{number}: is no line of a replay ({error!r})") from error
        if self.lines and not self.engine:
            raise ReplayError(f"{self._path}: has no line of the engine")
        for request, _, _ in self.lines:
            if request not in self.prefills:
                raise ReplayError(f"{self._path}: has no prefill of request {request!r}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from writing here meanwhile, and read what they wrote before.

        Raises:
            ReplayError: one is writing, or nothing can be written, or what is there belongs to another setup.
        """
        if self._path is None:
            yield
            return
        with self._open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ReplayError(f"{self._path}: another replay is writing it") from None
            except OSError:
                pass  # a file system without locks
            whole = self._read()
            self._load(whole)
            # A last line that was cut while it was written goes; its run is measured again.
            file.truncate(len(whole.encode()))
            yield

    def said_by(self, engine: Mapping[str, Any]) -> None:
        """Keep what the engine says of itself; what only one of two sessions says is not held against the other.

        Raises:
            ReplayError: the session was begun on another engine, or the line cannot be written.
        """
        found = json.loads(json.dumps(engine))
        for name, before in self.engine.items():
            if name in found and found[name] != before:
                raise ReplayError(f"{self._path}: was begun on another engine ({name} {before!r}, now {found[name]!r})")
        if not self.engine:
            self._add({"engine": found})

    def prefilled(self, request: str, seconds: float) -> None:
        """Keep how long a prefill took; the first time counts."""
        if request not in self.prefills:
            self._add({"request": request, "prefill_s": round(seconds, DIGITS)})

    def keep(self, key: Key, run: Execution, with_reply: bool) -> None:
        """Keep a run."""
        request, repeat, arm = key
        schedule = run.schedule
        entry = {
            "request": request,
            "repeat": repeat,
            "arm": arm,
            "codes": schedule.codes,
            "seconds": [round(seconds, DIGITS) for seconds in run.seconds],
            "paused_rounds": schedule.paused_rounds,
            "shadow_confirmations": schedule.shadow_confirmations,
        }
        self._add(entry | ({"reply": list(run.reply)} if with_reply else {}))

    def judged(self, request: str, arm: str, said: str, comparison: Comparison) -> None:
        """Keep how an arm's replies compared; `said` is a hash of these and those."""
        self._add({"request": request, "policy": arm, "compared_sha256": said, **comparison.document()})

    def _add(self, entry: Mapping[str, Any]) -> None:
        self._take(entry)
        self._append(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "engine" in entry:
            self.engine = dict(entry["engine"])
        elif "prefill_s" in entry:
            self.prefills[entry["request"]] = _seconds(entry["prefill_s"])
        elif "parity" in entry:
            self.comparisons[entry["request"], entry["policy"], entry["compared_sha256"]] = Comparison.of(entry)
        else:
            key = entry["request"], int(entry["repeat"]), entry["arm"]
            seconds = tuple(map(_seconds, entry["seconds"]))
            events = read_codes(entry["codes"])
            if len(seconds) != len(events) or (events and not sum(seconds)):
                raise ValueError(f"{len(seconds)} times of {entry['codes']!r}, {sum(seconds)} s in all")
            reply = tuple(map(operator.index, entry.get("reply", ())))
            if reply and len(reply) != 1 + sum(event.emitted for event in events):
                raise ValueError(f"{len(reply)} tokens of {entry['codes']!r}")
            asked = operator.index(entry["paused_rounds"]), operator.index(entry["shadow_confirmations"])
            self.lines[key] = Line(entry["codes"], seconds, *asked, reply)

    def _read(self) -> str:
        """Return the lines that are whole."""
        if self._path is None:
            return ""
        packed = self._packed
        try:
            if not self._path.exists():
                kept = gzip.decompress(packed.read_bytes()) if packed.exists() else b""
            elif not self._path.is_file():
                raise ReplayError(f"{self._path}: is no regular file")
            else:
                kept = self._path.read_bytes()
            if b"\n" not in kept and kept[: len(HEAD)] != HEAD[: len(kept)]:
                raise ReplayError(f"{self._path}: is no file of a replay (it begins {kept[: len(HEAD)]!r})")
            return kept[: kept.rfind(b"\n") + 1].decode()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise ReplayError(f"{self._path}: cannot be read ({error})") from error

    def _append(self, entry: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        entries = [entry] if self._begun else [{"format": FORMAT, "setup": self._setup}, entry]
        try:
            with self._open() as file:
                file.write("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in entries))
        except OSError as error:
            raise ReplayError(f"{self._path}: cannot be written ({error.strerror})") from error
        self._begun = True

    def _open(self) -> IO[str]:
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._packed.exists() and not self._path.exists():
                self._unpack(self._path)
            return self._path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise ReplayError(f"{self._path}: cannot be written ({error.strerror})") from error

    @property
    def _packed(self) -> Path:
        assert self._path is not None
        return self._path.with_name(self._path.name + ".gz")

    def _unpack(self, path: Path) -> None:
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.write_bytes(gzip.decompress(self._packed.read_bytes()))
            with suppress(FileExistsError):  # another process was faster, and may be writing it
                path.hardlink_to(beside)
        finally:
            beside.unlink(missing_ok=True)

    def _parsed(self, number: int, line: str) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ReplayError(f"{self._path}:{number}: not JSON ({error})") from error
        if not isinstance(entry, dict):
            raise ReplayError(f"{self._path}:{number}: must be an object")
        return entry


def _seconds(value: Any) -> float:
    found = float(value)
    if not 0 <= found < LONGEST_S:
        raise ValueError(f"a time of {value!r}")
    return found
