"""Which requests the search may see, and which only judge what it found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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

    Requests that say the same under several ids, as many arrivals make of few, go together, as the one of the lowest
    id, so that none judges itself.

    Raises:
        TuningError: a part is empty, a request is there twice, or what is held out is for tuning too.
    """
    requests = [request for trace in traces for request in trace.requests]
    alike: dict[tuple[bytes, bytes], list[int]] = {}
    for place, request in enumerate(requests):
        alike.setdefault((request.prompt.tobytes(), request.reply.tobytes()), []).append(place)
    for places in alike.values():
        _check_alike([requests[place] for place in places])
    if any(HELD_OUT in request.tags for request in requests):
        chosen = {place for place, request in enumerate(requests) if HELD_OUT in request.tags}
        rule = f"the tag {HELD_OUT!r}"
    else:
        order = sorted(alike.values(), key=lambda places: _rank(requests[place].id for place in places))
        chosen = {place for places in order[: round(len(order) / 3)] for place in places}
        rule = "the SHA-256 of their ids, the lowest third"
    return Split(
        tuple(request for place, request in enumerate(requests) if place not in chosen),
        tuple(request for place, request in enumerate(requests) if place in chosen),
        rule,
    )


def _rank(ids: Iterable[str]) -> bytes:
    return hashlib.sha256(min(ids).encode()).digest()


def _check_alike(requests: Sequence[Request]) -> None:
    """Refuse requests that say the same if two have one id, or if only some of them are held out."""
    first, *others = requests
    ids = {first.id}
    for other in others:
        if other.id in ids:
            raise TuningError(f"request {other.id!r} is there twice")
        ids.add(other.id)
        if (HELD_OUT in first.tags) != (HELD_OUT in other.tags):
            raise TuningError(f"requests {first.id!r} and {other.id!r} say the same, and only one of them is held out")
