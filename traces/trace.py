"""Recorded completions: what a model was told and what it said, as token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from traces import fields as rules
from traces.errors import TraceError, place, shown
from traces.fields import Finish, Margins, Tokens


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One completion. Lists become arrays, and every value is checked, as if it had been read from a file.

    Raises:
        TraceError: a value that a trace file may not hold either.
    """

    id: str
    """Its name, unique in its trace."""
    prompt: Tokens
    """Token ids of the prompt, at least one: int32, read-only."""
    reply: Tokens
    """Token ids of the reply, at least one, without the stop token: int32, read-only."""
    finish: Finish
    """What ended the reply: `stop` the model after its last token, `length` the limit, `guard` somebody else."""
    max_tokens: int | None = None
    """Limit of the reply in tokens; for `length` it is the reply's length, else None is no limit."""
    arrival_s: float | None = None
    """When it arrived, in seconds after the trace's start; None if the trace does not say."""
    eligible: bool = True
    """False: it never drafts."""
    reason: str | None = None
    """Why it is not eligible, if the trace says."""
    pipelinable: bool = True
    """False: its sampler needs the tokens so far, so no forward may be started before the last one is read."""
    tags: tuple[str, ...] = ()
    """Words to select requests by."""
    text: str | None = None
    """The reply as text, for people."""
    margins: Margins | None = None
    """Largest minus second-largest logit at each reply token: float32, read-only."""

    @classmethod
    def of(cls, *values: Any, **named: Any) -> Request:
        """Return a request from the constructor's values as plain lists, which a type checker keeps from it.

        Raises:
            TraceError: a value that a trace file may not hold either.

        Example:
            >>> Request.of("greeting", [1, 2], [3, 4, 5], "length").max_tokens
            3
        """
        return cls(*values, **named)

    def __post_init__(self) -> None:
        finish = rules.finish(self.finish)
        reply = rules.tokens("reply", self.reply)
        eligible = rules.switch("eligible", self.eligible)
        checked = {
            "id": rules.name_of("id", self.id),
            "prompt": rules.tokens("prompt", self.prompt),
            "reply": reply,
            "finish": finish,
            "max_tokens": rules.limit(self.max_tokens, finish, len(reply)),
            "arrival_s": rules.arrival(self.arrival_s),
            "reason": rules.reason(self.reason, eligible),
            "pipelinable": rules.switch("pipelinable", self.pipelinable),
            "tags": rules.tags(self.tags),
            "text": None if self.text is None else rules.string("text", self.text),
            "margins": None if self.margins is None else rules.margins(self.margins, len(reply)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return _plain(self) == _plain(other)

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[type[Request], tuple[Any, ...]]:
        # An unpickled array is writable; one made by the constructor is not.
        return Request, _values(self)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording in memory.

    Raises:
        TraceError: no requests, two of one id, or a header without the model's name.
    """

    source: str
    """What a report calls it: the name of a shipped trace, or the path as typed."""
    header: Mapping[str, Any]
    """Provenance: `model` always, and whatever else the recording knows of itself."""
    requests: tuple[Request, ...]
    """The completions in the order of the file, at least one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", tuple(self.requests))
        where = place(self.source)
        if not self.requests:
            raise TraceError(f"{where}: holds no requests")
        seen: set[str] = set()
        try:
            rules.name_of("model", self.header.get("model"))
            for request in self.requests:
                claim(request.id, seen)
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from None


def claim(name: str, seen: set[str]) -> None:
    """Add the id of a request to those seen in its trace.

    Raises:
        TraceError: another request has it.
    """
    if name in seen:
        raise TraceError(f"id must be unique in its trace (got {shown(name)} again)")
    seen.add(name)


def _values(request: Request) -> tuple[Any, ...]:
    return tuple(getattr(request, field.name) for field in fields(request))


def _plain(request: Request) -> tuple[Any, ...]:
    return tuple(value.tolist() if isinstance(value, np.ndarray) else value for value in _values(request))
