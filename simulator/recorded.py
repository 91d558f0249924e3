"""A recorded reply that answers the decode loop.

Under greedy decoding a lossless speculative decoder emits the same reply whatever it drafts, so one recording tells
for every policy which proposals would have been made and how many tokens of each would have come true.
"""

from __future__ import annotations

from collections.abc import Callable

from policies import UNLIMITED, Drafter, LookupPolicy, MatchTable, NoLookup, Policy, Prices, RecordedLookup, match_table
from simulator.schedule import Event, Schedule
from simulator.stream import Decoding, decode
from traces import Request


class Recording:
    """One request, with the match tables that its replays have needed so far."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.prompt_tokens = len(request.prompt)
        self.reply_tokens = len(request.reply)
        self.max_tokens = UNLIMITED if request.max_tokens is None else request.max_tokens
        self._tables: dict[tuple[int, int, str], MatchTable] = {}

    def lookup(self, policy: LookupPolicy) -> RecordedLookup:
        """Return what the policy's lookup finds at every context; a table is made once and kept."""
        key = (policy.ngram_max, policy.ngram_min, policy.match)
        table = self._tables.get(key)
        if table is None or table.cap < policy.max_draft:
            table = self._tables[key] = match_table(
                self.request.prompt,
                self.request.reply,
                ngram_max=policy.ngram_max,
                ngram_min=policy.ngram_min,
                match=policy.match,
                cap=policy.max_draft,
            )
        return table.lookup(policy.max_draft)

    def land(self, true_tokens: int, proposed: int, left: int) -> tuple[int, int, bool]:
        """Say what a verify of `proposed` tokens emits, lands, and whether it reads the stop.

        Args:
            true_tokens: proposals that the reply goes on with.
            proposed: tokens proposed.
            left: recorded tokens not emitted yet.
        """
        accepted = true_tokens if true_tokens < proposed else proposed
        if accepted < left:
            return accepted + 1, accepted, False
        # All that is left was proposed. Where somebody ended the reply, the last token came before it could count.
        guarded = self.request.finish == "guard"
        return left, left - guarded, not guarded

    def _answered(self, steps: Decoding, true_tokens: Callable[[int], int]) -> list[Event]:
        """Answer every step of the loop out of the recording."""
        events: list[Event] = []
        guard = self.request.finish == "guard"
        context, left = self.prompt_tokens + 1, self.reply_tokens - 1
        if guard and not left:
            return events
        try:
            code, count = next(steps)
            while True:
                accepted, stop = 0, False
                if code == "V":
                    emitted, accepted, stop = self.land(true_tokens(context), count, left)
                elif code == "B":
                    emitted = 0
                elif left:
                    emitted = count or 1
                else:
                    emitted, stop = 0, True
                context += emitted
                left -= emitted
                # tuple.__new__ makes the same Event in half the time.
                events.append(tuple.__new__(Event, (code, count, emitted, accepted, stop)))
                code, count = steps.send((emitted, accepted, stop or (guard and not left)))
        except StopIteration:
            return events

    def schedule(self, policy: Policy, prices: Prices, *, pipelined: bool = True) -> Schedule:
        """Decode the reply again under a policy.

        Args:
            policy: what proposes; ignored for a request that is not eligible, of which nobody asks anything.
            prices: what a policy may know of the machine.
            pipelined: False forces every round to be synchronous.
        """
        request = self.request
        lookup: RecordedLookup | NoLookup = NoLookup(self.prompt_tokens + self.reply_tokens)
        if isinstance(policy, LookupPolicy):
            lookup = self.lookup(policy)
        drafter = Drafter(policy.governor(prices), lookup, self.prompt_tokens + 1) if request.eligible else None
        steps = decode(
            drafter,
            self.max_tokens,
            pipelined=pipelined and request.pipelinable,
            pipeline_after=policy.pipeline_after,
        )
        events = tuple(self._answered(steps, lookup.true_tokens))
        if drafter is None:
            return Schedule(events)
        return Schedule(events, drafter.paused_rounds, drafter.shadow_confirmations)
