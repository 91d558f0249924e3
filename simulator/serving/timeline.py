"""What happened when: arrivals, first tokens, the gaps between tokens, and how many waited how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.serving.distribution import spread

Spread = dict[str, float] | None


@dataclass(slots=True)
class RequestTimes:
    """The times of one request so far."""

    arrived_s: float
    admitted_s: float = 0.0
    """When its first prompt token was forwarded."""
    first_s: float = 0.0
    """When its first token was emitted."""
    last_s: float = 0.0
    """When its last token so far was emitted."""
    ended_s: float = 0.0
    """When it was released, its stop read."""
    tokens: int = 0
    gaps: Counter[int] = field(default_factory=Counter)
    """Microseconds between tokens, and how often each occurred; tokens of one verify come together."""

    @property
    def ttft_s(self) -> float | None:
        """Seconds from the arrival to the first token; None without one."""
        return self.first_s - self.arrived_s if self.tokens else None

    @property
    def prefill_s(self) -> float | None:
        """Seconds from the first prompt token forwarded to the first token, other rows' ticks in between included."""
        return self.first_s - self.admitted_s if self.tokens else None

    @property
    def decode_s(self) -> float:
        """Seconds from the first token to the end."""
        return self.ended_s - self.first_s if self.tokens else 0.0

    @property
    def total_s(self) -> float:
        """Seconds from the arrival to the end."""
        return self.ended_s - self.arrived_s

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens after the first over the seconds they took; None where there are none or they took none."""
        return (self.tokens - 1) / self.decode_s if self.decode_s > 0 else None

    def document(self) -> dict[str, float | Spread]:
        """Return the times as a record shows them."""
        return {
            "arrival_s": self.arrived_s,
            "queue_s": self.admitted_s - self.arrived_s,
            "prefill_s": self.prefill_s,
            "ttft_s": self.ttft_s,
            "itl_s": _seconds(self.gaps),
            "decode_s": self.decode_s,
            "total_s": self.total_s,
            "tokens_per_s": self.tokens / self.total_s if self.total_s > 0 else None,
            "decode_tokens_per_s": self.decode_tokens_per_s,
        }


class Timeline:
    """The times of a whole run."""

    def __init__(self) -> None:
        self.rejected: list[str] = []
        """Requests that found the queue full."""
        self.ttft_s: Counter[float] = Counter()
        self.gaps: Counter[int] = Counter()
        """Microseconds between tokens, and how often each occurred."""
        self.rates: Counter[float] = Counter()
        """Decode tokens a second, one a request."""
        self.longest_queue = 0
        """Requests that waited at once, at most."""
        self.waiting_at_last = 0
        """Requests waiting when the last arrived, itself included."""
        self.arrivals = 0
        self.first_arrival_s = 0.0
        self.last_arrival_s = 0.0
        self.end_s = 0.0
        """When the last request was released."""
        self.tokens = 0
        self.decode_s = 0.0
        """Seconds from the first token to the end, summed over requests."""
        self._open: dict[str, RequestTimes] = {}
        self._even: Mapping[str, int] = {}
        """The rows of the last tick, if each emitted one token."""
        self._even_gaps: Counter[int] = Counter()
        """The gaps that these rows have had in common since."""
        self._even_s = 0.0
        """When they emitted their last token."""
        self._held_s: dict[float, float] = {}
        """For how many seconds how many requests waited."""
        self._waiting = 0
        self._since_s = 0.0

    def arrived(self, name: str, at_s: float, waiting: int) -> None:
        """Note an arrival, and that `waiting` requests wait now."""
        self._open[name] = RequestTimes(at_s)
        self._came(at_s)
        self._set_waiting(waiting, at_s)
        self.waiting_at_last = waiting

    def refused(self, name: str, at_s: float) -> None:
        """Note an arrival that found the queue full."""
        self.rejected.append(name)
        self._came(at_s)
        self.waiting_at_last = self._waiting

    def admitted(self, name: str, at_s: float, waiting: int) -> None:
        """Note that a request got its slot, and that `waiting` requests wait now."""
        self._open[name].admitted_s = at_s
        self._set_waiting(waiting, at_s)

    def emitted(self, counts: Mapping[str, int], at_s: float, verified_s: Mapping[str, float]) -> None:
        """Note the tokens of a tick.

        Args:
            counts: tokens of each row.
            at_s: when all rows but those that verified emitted theirs.
            verified_s: when those did.
        """
        if counts == self._even and not verified_s:
            self._even_gaps[_grains(at_s - self._even_s)] += 1
            self._even_s = at_s
            return
        self._settle()
        for name, count in counts.items():
            if count:
                request = self._open[name]
                now_s = verified_s.get(name, at_s)
                if request.tokens:
                    request.gaps[_grains(now_s - request.last_s)] += 1
                else:
                    request.first_s = now_s
                if count > 1:
                    request.gaps[0] += count - 1
                request.last_s = now_s
                request.tokens += count
        if not verified_s and all(count == 1 for count in counts.values()):
            self._even, self._even_s = counts, at_s

    def _settle(self) -> None:
        """Book what rows that emitted one token each, tick after tick, have had in common."""
        tokens = self._even_gaps.total()
        if tokens:
            for name in self._even:
                request = self._open[name]
                request.gaps.update(self._even_gaps)
                request.tokens += tokens
                request.last_s = self._even_s
            self._even_gaps.clear()
        self._even = {}

    def released(self, name: str, at_s: float) -> RequestTimes:
        """Close a request and return its times."""
        self._settle()
        request = self._open.pop(name)
        request.ended_s = at_s
        self.tokens += request.tokens
        self.decode_s += request.decode_s
        self.end_s = at_s
        if request.ttft_s is not None:
            self.ttft_s[request.ttft_s] += 1
        if request.decode_tokens_per_s is not None:
            self.rates[request.decode_tokens_per_s] += 1
        self.gaps.update(request.gaps)
        return request

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last release."""
        return max(0.0, self.end_s - self.first_arrival_s)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all requests a second; None when no time passed."""
        return self.tokens / self.span_s if self.span_s > 0 else None

    @property
    def queue_spread(self) -> Spread:
        """How many requests waited, over time; None when no time passed."""
        held = dict(self._held_s)
        if self.end_s > self._since_s:
            held[self._waiting] = held.get(self._waiting, 0.0) + self.end_s - self._since_s
        return spread(held)

    def document(self) -> dict[str, object]:
        """Return what a report says of the whole run."""
        return {
            "span_s": self.span_s,
            "tokens_per_s": self.tokens_per_s,
            "ttft_s": spread(self.ttft_s),
            "itl_s": _seconds(self.gaps),
            "decode_s": self.decode_s,
            "decode_tokens_per_s": spread(self.rates, slow=True),
            "queue": (self.queue_spread or {}) | {"longest": self.longest_queue},
            "rejected": len(self.rejected),
        }

    def _came(self, at_s: float) -> None:
        if not self.arrivals:
            self.first_arrival_s = self._since_s = at_s
        self.arrivals += 1
        self.last_arrival_s = at_s

    def _set_waiting(self, waiting: int, at_s: float) -> None:
        if at_s > self._since_s:
            self._held_s[self._waiting] = self._held_s.get(self._waiting, 0.0) + at_s - self._since_s
        self._waiting, self._since_s = waiting, at_s
        self.longest_queue = max(self.longest_queue, waiting)


def _grains(seconds: float) -> int:
    """Return whole microseconds: gaps are counted in them, so that memory does not grow with the tokens served."""
    return round(seconds * 1e6)


def _seconds(gaps: Mapping[int, int]) -> Spread:
    return spread({micros / 1e6: count for micros, count in gaps.items()})
