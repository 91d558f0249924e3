"""Logs of the reference engine, read as the runs they hold.

With `MLXCEL_PRINT_TOKEN_IDS` set, a run prints its ids and, if it drafts, its counters on stderr; on stdout it prints
its text, which begins with a line of its own, and a rate::

    [prompt ids (3): 5, 6, 7]
    Generating...
    the prompt and the reply, as free as text is
    [Generated 2 tokens in 0.05s = 40.00 tok/s]
    [token ids (2): 8, 9]
    [Prompt lookup] rounds=1 drafted_rounds=0 paused_rounds=0 proposed=0 accepted=0 ... shadow_confirmations=0

A file may hold many runs, with both streams mixed as they came, one behind the other, or without stdout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traces import fields, log_lines
from traces.errors import TraceError, place, shown
from traces.fields import Finish, Tokens
from traces.files import read_bytes
from traces.log_lines import Mark, RunMarks
from traces.trace import Request

COUNTERS = ("rounds", "drafted_rounds", "paused_rounds", "proposed", "accepted", "shadow_confirmations")
"""What the engine counts, in the order of its line; builds before shadow probes lack the last."""

_PAIR = re.compile(r"(\w+)=(\S+)")
_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRun:
    """One run of the engine as its log tells it."""

    id: str
    """The file's stem; the second run of a file is `-2`, and so on."""
    file: str
    """The file as typed."""
    line: int
    """The line at which the run begins, from 1."""
    prompt: Tokens
    """Token ids of the prompt."""
    reply: Tokens
    """Token ids of the reply, without the stop token."""
    counters: Mapping[str, int] | None
    """The engine's counters by name; None for a run without prompt lookup."""
    tokens_per_s: float | None
    """Tokens of the reply over the seconds of the whole call, prefill included; None where the log has no such rate."""

    @property
    def where(self) -> str:
        """What a message calls it."""
        return f"{place(self.file)}:{self.line}"

    def request(self, max_tokens: int | None = None) -> Request:
        """Return what was said, with how the reply ended as far as the log tells.

        Args:
            max_tokens: the limit that the run was given, in tokens.

        Raises:
            TraceError: the counters fit no end of this reply, or not this limit.
        """
        try:
            finish = self._finish(max_tokens)
            return Request(self.id, self.prompt, self.reply, finish, max_tokens)
        except TraceError as error:
            raise TraceError(f"{self.where}: {error}") from None

    def _finish(self, max_tokens: int | None) -> Finish:
        """Count the forwards that led nowhere: every one emits a token beside those that it accepts, the last may not.

        One that read the stop emitted nothing, and neither did one behind it that was in flight already. The drafter
        counts the forwards it was asked about, and it is not asked with one token left: one more may be missing.
        """
        length = len(self.reply)
        if self.counters is None:
            return "length" if length == max_tokens else "stop"
        rounds, accepted = self.counters["rounds"], self.counters["accepted"]
        spare = 1 + rounds + accepted - length
        if not -1 <= spare <= 2:
            raise TraceError(
                f"1 + rounds + accepted must be the reply's length, or from 1 less to 2 more "
                f"(got 1 + {rounds} + {accepted} for {length} tokens)"
            )
        if spare == 0 and max_tokens == length + 1:
            return "stop"
        finish: Finish = "stop" if spare > 0 else "length"
        if max_tokens is not None and (finish == "length") != (max_tokens == length):
            ended = "the limit or a loop guard" if finish == "length" else "the model"
            raise TraceError(
                f"max_tokens must fit the counters, by which {ended} ended the reply "
                f"(got {max_tokens} for {length} tokens, 1 + {rounds} + {accepted})"
            )
        return finish


def read_logs(wheres: Sequence[str]) -> list[LoggedRun]:
    """Return the runs of several logs in order, each under an id of its own.

    Raises:
        TraceError: a log cannot be read or is refused, or two runs would have one id.
    """
    runs: dict[str, LoggedRun] = {}
    for where in wheres:
        for run in read_log(where):
            if run.id in runs:
                raise TraceError(
                    f"{run.where}: a run's id is its file's stem, and {run.id!r} is taken by {runs[run.id].where}; "
                    "rename one of the files"
                )
            runs[run.id] = run
    return list(runs.values())


def read_log(where: str) -> list[LoggedRun]:
    """Return the runs of one log, at least one.

    Raises:
        TraceError: the file cannot be read, has no token ids, or contradicts itself; with file and line.
    """
    source = place(where)
    # The text of a reply is cut where the tokens are, so it need not be UTF-8 everywhere.
    text = read_bytes(where).decode("utf-8", errors="replace")
    stem = Path(where.removesuffix(".gz")).stem
    found = log_lines.runs(text, source)
    return [_run(marks, stem if n == 1 else f"{stem}-{n}", where) for n, marks in enumerate(found, start=1)]


def _run(marks: RunMarks, name: str, where: str) -> LoggedRun:
    mark = marks.prompt
    try:
        prompt = _ids("prompt ids", mark)
        mark = marks.reply
        reply = _ids("token ids", mark)
        counters = rate = None
        if marks.counters:
            mark = marks.counters
            counters = _counters(mark.values[0])
        if marks.rate:
            mark = marks.rate
            rate = _rate(mark, len(reply))
    except TraceError as error:
        raise TraceError(f"{place(where)}:{mark.line}: {error}") from None
    return LoggedRun(name, where, marks.line, prompt, reply, counters, rate)


def _ids(name: str, mark: Mark) -> Tokens:
    count, listed = mark.values
    words = listed.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    odd = next((word for word in words if not _INTEGER.fullmatch(word)), None)
    if odd is not None:
        raise TraceError(f"{name} must be integers (got {shown(odd)})")
    if len(words) != int(count):
        raise TraceError(f"{name} must be as many as their line says (got {len(words)} for {count})")
    return fields.tokens(name, list(map(int, words)))


def _counters(text: str) -> dict[str, int]:
    values = dict(_PAIR.findall(text))
    found = {}
    for name in COUNTERS:
        if name not in values:
            if name != "shadow_confirmations":
                raise TraceError(f"[Prompt lookup] must have {name} (got {', '.join(values)})")
        elif not _INTEGER.fullmatch(values[name]) or int(values[name]) < 0:
            raise TraceError(f"{name} must be an integer >= 0 (got {shown(values[name])})")
        else:
            found[name] = int(values[name])
    return found


def _rate(mark: Mark, reply_tokens: int) -> float | None:
    if not mark.values:
        return None
    generated, rate = mark.values
    if int(generated) != reply_tokens:
        raise TraceError(f"the rate must be that of the reply (got {generated} tokens for {reply_tokens} token ids)")
    try:
        tokens_per_s = float(rate)
    except ValueError:
        raise TraceError(f"the rate must be a number (got {shown(rate)})") from None
    # A reply that took less than the engine prints has no rate that means anything.
    return tokens_per_s if math.isfinite(tokens_per_s) and tokens_per_s > 0 else None
