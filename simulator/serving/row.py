"""A request on the server: as it waits, and as it holds a slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from policies import Drafter

End = Literal["stop", "length", "guard", "cancelled", "error"]
"""What ended a reply: the model, its limit, somebody outside, the client, or a forward that failed."""


@dataclass(frozen=True, slots=True)
class Job:
    """A request as a scheduler needs to know it: lengths and switches, no tokens."""

    id: str
    prompt_tokens: int
    limit: int
    """Tokens to emit at most, whatever limits them."""
    pipelinable: bool = True
    """False: no forward may be submitted before its last token is read, and so none of any row beside it."""
    drafter: Callable[[], Drafter] | None = None
    """Makes a fresh drafter that knows the prompt and the first token; None when the request may never draft."""
    reason: str | None = None
    """Why it may not, if that is known."""


class Landed(NamedTuple):
    """What a forward brought one row."""

    emitted: int
    """Tokens emitted; the stop is not one."""
    accepted: int = 0
    """Proposals that landed."""
    end: End | None = None
    """What ended the reply, where something other than its limit did."""


TOKEN = Landed(1)
"""One more token, as nearly every forward brings."""
FAILED = Landed(0, end="error")
"""Nothing, and nothing more to come."""


class Row:
    """A request that holds a slot, from its admission until it is released or preempted; executors only read it.

    Equal only to itself: a request that is admitted again is another row.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.id = job.id
        self.limit = job.limit
        """Tokens to emit at most."""
        self.prefilled = 0
        """Prompt tokens that have been forwarded."""
        self.generated = 0
        """Tokens emitted, the prefill's included."""
        self.end: End | None = None
        """What ended it; it is released when the tick is over."""
        self.rounds = 0
        """Forwards it was part of after its prefill, read or not."""
        self.drains = 0
        """Steps in flight that were read with nothing behind them because this row proposed."""
        self.phantom_drains = 0
        """Those after which it had nothing to propose."""
        self.drafter: Drafter | None = None
        """What proposes; made at the first ask, so that a row that is never asked pays for no lookup."""
        self._make_drafter = job.drafter

    @property
    def context(self) -> int:
        """Prompt and emitted tokens."""
        return self.job.prompt_tokens + self.generated

    @property
    def drafts(self) -> bool:
        """Whether it may draft at all."""
        return self._make_drafter is not None

    def ask(self, in_flight: bool, rows: int) -> int | None:
        """Hand the drafter what it has not seen and return how many tokens it proposes.

        Args:
            in_flight: whether a step has been submitted and not read.
            rows: rows that decode side by side.

        Returns:
            None when there is no drafter to ask, or none any more: one that knows more than was emitted is dropped.
        """
        if self.drafter is None and self._make_drafter is not None:
            self.drafter = self._make_drafter()
        if self.drafter is None:
            return None
        unseen = self.context - self.drafter.context
        if unseen < 0:
            self.drafter = self._make_drafter = None
            return None
        self.drafter.told(unseen)
        remaining = self.limit - self.generated
        return self.drafter.ask(remaining, remaining - 1, in_flight, rows)

    def retract(self) -> None:
        """Take the last ask back: what it was made for will not happen."""
        if self.drafter:
            self.drafter.retract()

    def quiet(self, after: int) -> bool:
        """Return whether it has proposed nothing for long enough to decode ahead."""
        return self.drafter is not None and self.drafter.pipeline_due(after)

    def land(self, landed: Landed) -> None:
        """Take what a forward brought."""
        self.generated += landed.emitted
        if landed.end is not None:
            self.end = landed.end
        elif self.generated >= self.limit:
            self.end = "length"

    def land_verify(self, landed: Landed) -> None:
        """Take what a verify brought, and tell the drafter how its proposal fared."""
        if self.drafter:
            self.drafter.told(landed.emitted, landed.accepted)
        self.land(landed)
