"""The drafter: lookup, governor, shadow probe and plain streak of one request, in the reference's order."""

from __future__ import annotations

from policies.errors import PolicyError
from policies.governor import Governor, Match, State
from policies.lookup import Lookup

UNLIMITED = 2**62
"""Tokens that remain when nothing limits the reply."""


class Drafter:
    """Says how many tokens to propose in each round of one request.

    Every iteration of a decode loop asks once; the forward that follows is told, or the ask is retracted because its
    proposal was dropped. Counters are the reference's, so a retracted ask is taken out of them again.
    """

    def __init__(self, governor: Governor, lookup: Lookup, context: int) -> None:
        """Start at `context` tokens: the prompt and the token that the prefill emitted.

        Raises:
            PolicyError: the governor is none.
        """
        self.context = context
        """Tokens known so far."""
        self.plain_streak = 0
        """Asks in a row that were answered with nothing."""
        self.drafted_rounds = 0
        self.paused_rounds = 0
        self.proposed = 0
        self.accepted = 0
        self.shadow_confirmations = 0
        if not isinstance(governor, Governor):
            raise PolicyError(f"governor: must extend policies.Governor (got a {type(governor).__name__})")
        self._governor = governor
        self._chooses = type(governor).choose is not Governor.choose
        self._lookup = lookup
        self._probe: int | None = None
        """The context at which the pending shadow probe was opened."""
        self._answer = 0
        self._paused = False

    def ask(self, remaining: int, most: int, in_flight: bool = False, rows: int = 1) -> int:
        """Return how many tokens to propose now.

        Args:
            remaining: tokens that may still be emitted, this round included.
            most: proposals that there is room for, at least 1.
            in_flight: whether a submitted forward has not been read.
            rows: requests decoded side by side.
        """
        context, governor = self.context, self._governor
        if self._probe is not None:
            self._settle(self._probe, context)
        # tuple.__new__ makes the same State in half the time, and this line runs once a round in every sweep.
        state = tuple.__new__(State, (remaining, context, in_flight, self.plain_streak, rows))
        budget = governor.budget(state)
        self._paused = budget <= 0
        if budget <= 0:
            self.paused_rounds += 1
            if self._probe is None and governor.probing and self._lookup.claims(context):
                self._probe = context
            tokens = 0
        else:
            tokens = self._lookup.find(context)
            if tokens > budget or tokens > most:
                tokens = min(budget, most)
            if tokens and self._chooses:
                tokens = governor.choose(state, Match(tokens, self._lookup.match_length(context)))
        self._answer = tokens
        if tokens:
            self.plain_streak = 0
            self.drafted_rounds += 1
            self.proposed += tokens
        else:
            self.plain_streak += 1
        return tokens

    def retract(self) -> None:
        """Take the last ask out of the counters; streak, cooldown and probe stay as it left them."""
        if self._paused:
            self.paused_rounds -= 1
        if self._answer:
            self.drafted_rounds -= 1
            self.proposed -= self._answer

    def told(self, emitted: int, accepted: int | None = None) -> None:
        """Learn that `emitted` tokens were appended, `accepted` of a verify's proposals among them."""
        self.context += emitted
        if accepted is not None:
            self.accepted += accepted
            self._governor.record(accepted)

    def pipeline_due(self, after: int) -> bool:
        """Return whether plain rounds should be pipelined: the streak exceeds `after`, or the governor is paused."""
        return self.plain_streak > after or self._governor.paused

    def skip(self, asks: int) -> int:
        """Take up to `asks` asks at once that are sure to be answered with nothing, one token emitted after each.

        Only a recorded reply can be sure. The counters and the governor end as if every ask had been made.

        Returns:
            How many were taken, and so how many tokens were emitted; 0 when the next ask has to be made.
        """
        known = self._lookup.known(self.context)
        if known < asks:
            asks = known
        if asks <= 0 or (rest := self._governor.rest(self.context, asks)) is None:
            return 0
        if rest:
            taken = self._skip_probes(rest) if self._governor.probing else rest
            self.paused_rounds += taken
        else:
            taken = self._lookup.quiet(self.context, asks) or 0
        self.plain_streak += taken
        self.context += taken
        return taken

    def _skip_probes(self, asks: int) -> int:
        """Open and refute probes over `asks` paused asks; stop at the ask that confirms one."""
        context, end, lookup = self.context, self.context + asks, self._lookup
        while context < end:
            if self._probe is None:
                context += lookup.unclaimed(context, end - context)
                if context < end:
                    self._probe = context
            else:
                came_true = lookup.settle(self._probe, context)
                if came_true:
                    break
                if came_true is False:
                    self._probe = None
                    self._governor.refute()
                    continue
            context += context < end
        return context - self.context

    def _settle(self, probe: int, context: int) -> None:
        came_true = self._lookup.settle(probe, context)
        if came_true is None:
            return
        self._probe = None
        if came_true:
            self.shadow_confirmations += 1
            self._governor.confirm()
        else:
            self._governor.refute()
