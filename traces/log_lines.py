"""The lines of an engine's log that mean something, and which of them belong to one run.

A reply's text stands between them and may hold anything, such lines too. So only whole lines count, a run begins only
where its streams allow it, and of several lines of a kind within a run the last is the engine's. One line need not be
whole: the engine echoes the prompt without ending its line, and where both streams are one the prompt's ids follow on
it, and the reply's on the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from traces.errors import TraceError

Kind = Literal["prompt", "text", "reply", "rate", "counters"]

_PROMPT = re.compile(r"\[prompt ids \((\d{1,9})\):(.*)\]", re.ASCII)
_ECHOED = re.compile(r"\[prompt ids \((\d{1,9})\):([^\]]*\]?)\]$", re.ASCII)
_REPLY = re.compile(r"\[token ids \((\d{1,9})\):(.*)\]", re.ASCII)

PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("prompt", _PROMPT),
    ("reply", _REPLY),
    ("text", re.compile(r"Generating\.\.\.")),
    ("counters", re.compile(r"\[Prompt lookup\] (\w+=.*)")),
    ("rate", re.compile(r"\[Generated (\d{1,9}) tokens? in \S+ ?s = (\S+) tok/s\]", re.ASCII)),
    # The block that stands in the rate's place under --profile counts only a part of the call.
    ("rate", re.compile(r"\[Profile Results\]")),
)

ADVICE = "set MLXCEL_PRINT_TOKEN_IDS and log stdout and stderr together (2>&1)"


class Mark(NamedTuple):
    """A line that means something."""

    kind: Kind
    line: int
    """From 1."""
    values: tuple[str, ...]
    """What the line says: a count and a list of ids, the counters, a count and a rate, or nothing."""
    echoed: bool = False
    """Whether the echo of the prompt stands before it on the line."""


@dataclass(frozen=True, slots=True)
class RunMarks:
    """The lines of one run."""

    line: int
    """Where the run begins."""
    prompt: Mark
    reply: Mark
    counters: Mark | None
    rate: Mark | None


def runs(text: str, source: str) -> list[RunMarks]:
    """Return the runs of a log, at least one.

    Args:
        text: the whole log.
        source: what a message calls it.

    Raises:
        TraceError: a run lacks its ids, or the two streams do not hold the same runs.
    """
    marks = list(_marks(text))
    if not _count(marks, "prompt"):
        raise TraceError(f"{source}: holds no line [prompt ids (n): ...]; {ADVICE}")
    stderr, stdout = _streams(marks)
    found = [_chosen(run, source) for run in _split(stderr)]
    if not stdout:
        return found
    begins = [place for place, mark in enumerate(stdout) if mark.kind == "text"]
    if len(begins) != len(found):
        raise TraceError(
            f"{source}: stdout and stderr must hold the same runs (got {len(begins)} and {len(found)}); "
            "log both together (2>&1)"
        )
    rates = [_last(stdout[begin:end], "rate") for begin, end in pairwise([*begins, len(stdout)])]
    return [replace(run, rate=rate) for run, rate in zip(found, rates, strict=True)]


def _marks(text: str) -> Iterator[Mark]:
    # Other line ends than these are part of the reply's text.
    lines = [line.rstrip() for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if mark := _whole(number, line) or _echoed(number, line, lines[number] if number < len(lines) else ""):
            yield mark


def _whole(number: int, line: str) -> Mark | None:
    if line.startswith(("[", "Generating")):
        for kind, pattern in PATTERNS:
            if match := pattern.fullmatch(line):
                return Mark(kind, number, match.groups())
    return None


def _echoed(number: int, line: str, following: str) -> Mark | None:
    """Return the prompt's ids behind its echo; the engine prints the reply's ids right after them."""
    match = _ECHOED.search(line) if line.endswith("]") else None
    return Mark("prompt", number, match.groups(), echoed=True) if match and _REPLY.fullmatch(following) else None


def _streams(marks: Sequence[Mark]) -> tuple[Sequence[Mark], Sequence[Mark]]:
    """Return stderr's and stdout's marks where one stream of many runs follows the other; else all marks and none."""
    first = _first_text(marks)
    if first < len(marks) and _count(marks[:first], "reply") > 1:
        return marks[:first], marks[first:]
    ended = max((place for place, mark in enumerate(marks) if mark.kind == "rate"), default=-1) + 1
    if first == 0 and _count(marks[ended:], "reply") > 1:
        return marks[ended:], marks[:ended]
    return marks, ()


def _split(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Split marks into runs; each begins as the first does, with its prompt ids or with its text."""
    opener = next((mark.kind for mark in marks if mark.kind in ("prompt", "text")), "prompt")
    found: list[list[Mark]] = [[]]
    for place, mark in enumerate(marks):
        run = found[-1]
        if run and mark.kind == opener and _begins(run, marks[place + 1 :], opener):
            found.append([])
        found[-1].append(mark)
    return found


def _begins(run: Sequence[Mark], after: Iterable[Mark], opener: Kind) -> bool:
    """Return whether a run begins at a mark, or else the text of the run before it shows one like it."""
    if opener == "text":
        return _last(run, "reply") is not None
    following = next((mark.kind for mark in after if mark.kind in ("prompt", "text")), None)
    return following == "text" or _last(run, "text") is None


def _chosen(run: Sequence[Mark], source: str) -> RunMarks:
    """Return a run's own lines: the last of each kind, or the last before the text, or the ids behind the echo."""
    before = run[: _first_text(run)]
    prompt, reply, counters = (_last(before, kind) or _last(run, kind) for kind in ("prompt", "reply", "counters"))
    echoed = next((place for place, mark in enumerate(run) if mark.echoed), None)
    if echoed is not None and not before:
        prompt, reply = run[echoed], run[echoed + 1]
    line = run[0].line
    if prompt is None or reply is None:
        name = "token ids" if prompt else "prompt ids"
        raise TraceError(f"{source}:{line}: the run that begins here has no line [{name} (n): ...]; {ADVICE}")
    return RunMarks(line, prompt, reply, counters, _last(run, "rate"))


def _first_text(marks: Sequence[Mark]) -> int:
    return next((place for place, mark in enumerate(marks) if mark.kind == "text"), len(marks))


def _last(marks: Sequence[Mark], kind: str) -> Mark | None:
    return next((mark for mark in reversed(marks) if mark.kind == kind), None)


def _count(marks: Sequence[Mark], kind: Kind) -> int:
    return sum(mark.kind == kind for mark in marks)
