"""What a scheduler wants done: batch actions, and what comes out of them.

Nothing here says who does it. A recording answers for `simulate`, a clock adds what it takes, and an engine with
batched caches can execute the same actions. Positions are those of a row's KV state: a forward appends one for every
token that it is fed, and the token that it emits is fed to the next.

An executor sends back what each row got, naming only rows that got anything else than one token. A forward that
fails is reported by throwing `ForwardError` into the scheduler; it must have left no position behind.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from simulator.serving.row import Landed, Row

T = TypeVar("T")


class Prefill(NamedTuple):
    """Forward the next `tokens` prompt tokens of each row, or what is left; a row whose prompt ends emits a token."""

    rows: Sequence[Row]
    tokens: int


class Warm(NamedTuple):
    """Run one verify of every width up to `max_draft` + 1 on a row and take each back, so that none is the first."""

    row: Row
    max_draft: int


class Step(NamedTuple):
    """Forward the last token of each row in one batch and read the results."""

    rows: Sequence[Row]


class Submit(NamedTuple):
    """Start such a forward, fed by the results of the step in flight if there is one, and read nothing."""

    rows: Sequence[Row]


class Read(NamedTuple):
    """Read the results of the oldest step in flight."""

    rows: Sequence[Row]


class Verify(NamedTuple):
    """Forward a row's last token and its proposal, read all results, and take back the positions that did not land."""

    row: Row
    proposed: int


class Unwind(NamedTuple):
    """Wait for the steps in flight, read none, and take `positions` back from each row.

    A row that is named in the answer could not be taken back and is lost.
    """

    rows: Sequence[Row]
    positions: int


class Release(NamedTuple):
    """Forget everything about these rows."""

    rows: Sequence[Row]


Action = Prefill | Warm | Step | Submit | Read | Verify | Unwind | Release
Outcome = Mapping[Row, Landed]
Work = Generator[Action, Outcome, T]
"""Yields actions, is sent the outcome of each, and returns what was made of them."""

NOTHING: Outcome = {}
"""The outcome of actions that emit nothing, and of steps that brought every row one token and went well."""


class ForwardError(Exception):
    """A forward failed, or brought results that cannot be read."""
