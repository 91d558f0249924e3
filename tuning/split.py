"""Which requests the search may see, and which only judge what it found."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from traces import Request, Trace
from tuning.errors import TuningError
from tuning.kinds import HELD_OUT


@dataclass(frozen=True)
class Split:
    """Two parts of the requests of some traces, neither of them empty.

    Raises:
        TuningError: one of them is.
    """

    tuning: tuple[Request, ...]
    """What the search may see."""
    held_out: tuple[Request, ...]
    """What judges the result, and nothing else."""
    rule: str
    """How they were told apart."""

    def __post_init__(self) -> None:
        for part, requests in (("tuning", self.tuning), ("held-out", self.held_out)):
            if not requests:
                count = len(self.tuning) + len(self.held_out)
                raise TuningError(
                    f"the {part} split is empty (by {self.rule}, of {count} request{'s' * (count > 1)}); "
                    f"name more traces, or tag requests {HELD_OUT!r}"
                )


def split(traces: Sequence[Trace]) -> Split:
    """Split the requests of traces: by their tags where any is tagged `held-out`, else a third by a hash of the ids.

    Raises:
        TuningError: a part is empty, or a request is there twice and would judge itself.
    """
    seen: dict[tuple[str, bytes, bytes], str] = {}
    for trace in traces:
        for request in trace.requests:
            said = request.id, request.prompt.tobytes(), request.reply.tobytes()
            if said in seen:
                raise TuningError(f"request {request.id!r} is there twice (in {seen[said]} and {trace.source})")
            seen[said] = trace.source
    requests = [request for trace in traces for request in trace.requests]
    tagged = any(HELD_OUT in request.tags for request in requests)
    if tagged:
        chosen = {place for place, request in enumerate(requests) if HELD_OUT in request.tags}
        rule = f"the tag {HELD_OUT!r}"
    else:
        order = sorted(range(len(requests)), key=lambda place: hashlib.sha256(requests[place].id.encode()).digest())
        chosen = set(order[: round(len(requests) / 3)])
        rule = "the SHA-256 of their ids, the lowest third"
    return Split(
        tuple(request for place, request in enumerate(requests) if place not in chosen),
        tuple(request for place, request in enumerate(requests) if place in chosen),
        rule,
    )
