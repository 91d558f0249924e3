"""The decode loop of one request, without a clock.

`decode` says what to do next and is told what came out. Who does it is another matter: a recording answers for
`simulate`, an engine will answer for a replay, and both therefore decide alike. The rules are the reference engine's
newest loop.

A step is an event code and a number:

    S 0   synchronous plain step: forward the current token and read it
    V k   verify: forward the current token and k proposals, read all positions
    B 0   begin to pipeline: submit a forward of the current token, read nothing
    P n   n times: submit the next forward, then read the one before it
    D 0   drain: read the step in flight with nothing behind it, because a proposal appeared
    R 0   read the step in flight with nothing behind it, because its token is the last allowed
"""

from __future__ import annotations

from collections.abc import Generator

from policies import Drafter

Step = tuple[str, int]
Outcome = tuple[int, int, bool]
"""Tokens emitted (the stop is not one), proposals that landed, and whether the reply ended: the stop was read, or
somebody outside (a loop guard, a stop string, a client) ended it."""
Decoding = Generator[Step, Outcome, None]


def decode(drafter: Drafter | None, max_tokens: int, *, pipelined: bool = True, pipeline_after: int = 2) -> Decoding:
    """Decode one request after its prefill, which emitted the first token.

    Args:
        drafter: what proposes; None when nobody may, which pipelines from the first step.
        max_tokens: tokens to emit at most, the first included.
        pipelined: whether a forward may be in flight while the one before it is read.
        pipeline_after: plain rounds in a row after which the pipeline starts.

    Yields:
        Steps; send the outcome of each.
    """
    remaining = max_tokens - 1
    in_flight = False
    while remaining > 0:
        if in_flight and drafter and (skipped := drafter.skip(remaining - 1)):
            emitted, _, ended = yield "P", skipped
            if ended:
                return
            remaining -= emitted
            continue
        # With one token left a proposal could not pay, so nobody is asked and nothing of the drafter moves.
        proposed = drafter.ask(remaining, remaining - 1, in_flight) if drafter and remaining > 1 else 0
        if in_flight:
            if proposed and drafter:
                # The proposal lacks the token in flight: drop it and look again once that is known.
                drafter.retract()
            code, count = ("D", 0) if proposed else ("P", 1) if remaining > 1 else ("R", 0)
            in_flight = code == "P"
        elif proposed:
            code, count = "V", proposed
        elif pipelined and remaining > 1 and (drafter is None or drafter.pipeline_due(pipeline_after)):
            yield "B", 0
            in_flight = True
            continue
        else:
            code, count = "S", 0
        emitted, accepted, ended = yield code, count
        if drafter:
            drafter.told(emitted, accepted if code == "V" else None)
        if ended:
            return
        remaining -= emitted
