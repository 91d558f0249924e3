"""Decoding that knows only what was emitted so far, as an engine's does: the outside check of replay."""

from __future__ import annotations

from calibration import Costs
from policies import Drafter, LookupPolicy, NgramIndex, Policy
from simulator.recorded import Recording
from simulator.schedule import Event, Schedule
from simulator.stream import decode


def live(recording: Recording, policy: Policy, costs: Costs, pipelined: bool) -> Schedule:
    """Decode with an index that sees only what was emitted, as an engine would."""
    request = recording.request
    text = [*request.prompt.tolist(), *request.reply.tolist()]
    context = recording.prompt_tokens + 1
    seen = text[:context]
    index = NgramIndex(seen)
    if isinstance(policy, LookupPolicy):
        index = NgramIndex(
            seen,
            ngram_max=policy.ngram_max,
            ngram_min=policy.ngram_min,
            max_draft=policy.max_draft,
            match=policy.match,
        )
    drafter = Drafter(policy.governor(costs), index, context) if request.eligible else None
    steps = decode(
        drafter,
        recording.max_tokens,
        pipelined=pipelined and request.pipelinable,
        pipeline_after=policy.pipeline_after,
    )
    events: list[Event] = []
    if request.finish == "guard" and context == len(text):
        return Schedule(())
    try:
        code, count = next(steps)
        while True:
            event = verified(code, count, index.proposal(context, count), text[context:], request.finish)
            events.append(event)
            seen += text[context : context + event.emitted]
            context += event.emitted
            guarded = request.finish == "guard" and context == len(text)
            code, count = steps.send((event.emitted, event.accepted, event.stop or guarded))
    except StopIteration:
        if drafter is None:
            return Schedule(tuple(events))
        return Schedule(tuple(events), drafter.paused_rounds, drafter.shadow_confirmations)


def verified(code: str, count: int, proposal: list[int], coming: list[int], finish: str) -> Event:
    """Walk the positions of a forward as the reference does: emit, then go on only where the proposal was right."""
    if code == "B":
        return Event(code, count, 0, 0, False)
    emitted = accepted = 0
    for claimed in [*proposal, None] if code == "V" else [None]:
        if emitted == len(coming):
            return Event(code, count, emitted, accepted, True)
        token = coming[emitted]
        emitted += 1
        if (finish == "guard" and emitted == len(coming)) or token != claimed:
            break
        accepted += 1
    return Event(code, count, emitted, accepted, False)
