"""Arrivals out of somebody's log, for the requests of a trace that has none.

Logs of arrivals say when requests came and how long they were, not what was said, so no reply can be made of them.
What they have is given to replies that were recorded: one after the other, in the order of the trace, and from its
beginning again while there are arrivals left. How long the log's own requests were is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, cycle

from traces.trace import Request


def given(arrivals_s: Iterable[float], requests: Iterable[Request]) -> Iterator[Request]:
    """Yield a request for every arrival, earliest first, in seconds after the first.

    A request that comes for the n-th time has `-n` behind its id, or the next number that no other request has.

    Args:
        arrivals_s: when requests came, on any clock.
        requests: what they said, at least one.
    """
    at_s, said = sorted(arrivals_s), list(requests)
    taken = {request.id for request in said}
    for place, (moment_s, request) in enumerate(zip(at_s, cycle(said), strict=False)):
        name, lap = request.id, place // len(said) + 1
        if lap > 1:
            name = next(one for number in count(lap) if (one := f"{request.id}-{number}") not in taken)
            taken.add(name)
        yield replace(request, id=name, arrival_s=moment_s - at_s[0])
