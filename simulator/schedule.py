"""What happened in one reply, step by step, before anybody asks how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Event(NamedTuple):
    """One step of the loop and what came out of it; `P` may stand for several alike."""

    code: str
    """S, V, B, P, D or R, as in `simulator.stream`."""
    size: int
    """Proposals of a V, steps of a P, else 0."""
    emitted: int
    """Tokens emitted, the stop not counted."""
    accepted: int
    """Proposals that landed."""
    stop: bool
    """Whether the stop was read."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of one reply after its prefill, in order."""

    events: tuple[Event, ...]
    paused_rounds: int = 0
    """Plain forwards for which the governor, when asked, granted nothing."""
    shadow_confirmations: int = 0
    """Shadow probes that came true."""

    @property
    def generated(self) -> int:
        """Tokens emitted, the prefill's included."""
        return 1 + sum(event.emitted for event in self.events)

    @property
    def rounds(self) -> int:
        """Forwards submitted after the prefill, read or not."""
        return sum(event.size if event.code == "P" else event.code in "SVB" for event in self.events)

    @property
    def drafted_rounds(self) -> int:
        """Verify forwards."""
        return sum(event.code == "V" for event in self.events)

    @property
    def proposed(self) -> int:
        """Tokens proposed to verify forwards."""
        return sum(event.size for event in self.events if event.code == "V")

    @property
    def accepted(self) -> int:
        """Proposals that landed."""
        return sum(event.accepted for event in self.events)

    @property
    def drains(self) -> int:
        """Reads of a step in flight with nothing submitted behind it because a proposal appeared."""
        return sum(event.code == "D" for event in self.events)

    @property
    def phantom_drains(self) -> int:
        """Drains whose next forward carried no proposal."""
        following = zip(self.events, self.events[1:], strict=False)
        return sum(event.code == "D" and after.code != "V" for event, after in following)

    @property
    def steps(self) -> tuple[Event, ...]:
        """The events with every `P` on its own."""
        return tuple(step for event in self.events for step in _single(event))

    @property
    def codes(self) -> str:
        """One code a step, space-separated: `S S B P D V3:2 S!`; `!` follows the one that read the stop."""
        return " ".join(_code(step) for step in self.steps)


def read_codes(codes: str) -> tuple[Event, ...]:
    """Read event codes back, where every verify and every step emitted what its code says.

    A verify that met the end emits a token less than any other; only its `!` tells.

    >>> [event.emitted for event in read_codes("S V8:7 B P D V3:1!")]
    [1, 8, 0, 1, 1, 1]

    Raises:
        ValueError: one that is none.
    """
    events = []
    for code in codes.split():
        kind, stop = code[0], code.endswith("!")
        if kind not in "SVBPDR":
            raise ValueError(f"no event code {code!r}")
        if kind == "V":
            width, accepted = map(int, code[1:].rstrip("!").split(":"))
            events.append(Event("V", width - 1, accepted + 1 - stop, accepted, stop))
        else:
            events.append(Event(kind, int(kind == "P"), int(kind != "B" and not stop), 0, stop))
    return tuple(events)


def _single(event: Event) -> Iterator[Event]:
    if event.code != "P" or event.size == 1:
        yield event
        return
    # Only a step on its own can read the stop, so every one of these emits a token.
    yield from [Event("P", 1, 1, 0, False)] * event.size


def _code(step: Event) -> str:
    code = f"V{step.size + 1}:{step.accepted}" if step.code == "V" else step.code
    return code + "!" * step.stop
