"""What came out of simulating one request: its rounds, its counters and its times."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from policies import Policy
from simulator.schedule import Schedule
from simulator.two_clocks import TwoClocks
from traces import Request


@dataclass(frozen=True, slots=True)
class Round:
    """One step of the loop on the clock; together they are the whole decode time."""

    kind: str
    """The event code: S, V, B, P, D or R."""
    width: int
    """Positions of the forward submitted; 0 where none was."""
    accepted: int
    """Proposals that landed."""
    emitted: int
    """Tokens emitted."""
    start_s: float
    """When the host began it, seconds after the prefill's token was read."""
    duration_s: float
    """Host time until the next step could begin."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Where a part of the decode time went."""

    kind: str
    """`pipelined`, `synchronous`, `verify W` or `drains`."""
    rounds: int
    """How many there were."""
    seconds: float
    """What they took together."""


def kind_order(kind: str) -> tuple[int, int]:
    """Return the key by which the kinds of `Spent` are listed."""
    word, _, width = kind.partition(" ")
    return ("pipelined", "synchronous", "verify", "drains").index(word), int(width or 0)


@dataclass(frozen=True)
class Run:
    """A request decoded under a policy on a machine, beside plain decoding."""

    request: Request
    policy: Policy
    schedule: Schedule
    prefill_s: float
    """Seconds of the prefill, the same for both."""
    decode_s: float
    """Seconds from the prefill's token to the last."""
    plain_decode_s: float
    """The same under plain decoding, which pipelines from its first step where the request allows it."""
    clocks: TwoClocks = field(repr=False)
    """The clocks that priced it."""

    @property
    def generated(self) -> int:
        """Tokens emitted, the prefill's included."""
        return self.schedule.generated

    @property
    def total_s(self) -> float:
        """Prefill and decode."""
        return self.prefill_s + self.decode_s

    @property
    def plain_total_s(self) -> float:
        """Prefill and plain decode."""
        return self.prefill_s + self.plain_decode_s

    @property
    def speedup(self) -> float | None:
        """Plain total over this total; None where that is no number."""
        return ratio(self.plain_total_s, self.total_s)

    @property
    def decode_speedup(self) -> float | None:
        """Plain decode over this decode, the prefill left out of both."""
        return ratio(self.plain_decode_s, self.decode_s)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Every step in order."""
        steps = self.schedule.steps
        passed_s = self.clocks.passed_s(steps, len(self.request.prompt))
        rounds = []
        start_s = 0.0
        for (code, count, emitted, accepted, _), end_s in zip(steps, passed_s, strict=True):
            width = {"V": count + 1, "D": 0, "R": 0}.get(code, 1)
            rounds.append(Round(code, width, accepted, emitted, start_s, end_s - start_s))
            start_s = end_s
        return tuple(rounds)

    def to_frame(self) -> Any:
        """Return the rounds as a pandas.DataFrame, a row each; pandas is imported only here."""
        import pandas as pd

        return pd.DataFrame([asdict(turn) for turn in self.rounds])

    @cached_property
    def spent(self) -> tuple[Spent, ...]:
        """Where the decode time went; the parts sum to `decode_s`.

        A pipelined forward that was read is booked at the price of a pipelined step; what its stretch took beyond,
        the overlap lost at its end and at the next start, is booked under drains.
        """
        costs = self.clocks.costs
        kinds: dict[str, Spent] = {"pipelined": Spent("pipelined", 0, 0.0), "synchronous": Spent("synchronous", 0, 0.0)}
        stretch_s = 0.0
        context = len(self.request.prompt) + 1
        for turn in self.rounds:
            kind = f"verify {turn.width}" if turn.kind == "V" else "synchronous" if turn.kind == "S" else "pipelined"
            seconds = turn.duration_s
            if kind == "pipelined":
                stretch_s += seconds
                # What is read here was submitted one step earlier, over one position less than are known now.
                seconds = costs.step_s(context - 1) if turn.kind != "B" else 0.0
            known = kinds.get(kind, Spent(kind, 0, 0.0))
            kinds[kind] = Spent(kind, known.rounds + (turn.kind != "B"), known.seconds + seconds)
            context += turn.emitted
        drains_s = stretch_s - kinds["pipelined"].seconds
        kinds["drains"] = Spent("drains", self.schedule.drains, drains_s)
        return tuple(kinds[kind] for kind in sorted(kinds, key=kind_order))


def ratio(numerator: float, denominator: float) -> float | None:
    """Return a quotient that is a number: 1.0 for nothing over nothing, None for something over nothing."""
    if denominator:
        return numerator / denominator
    return None if numerator else 1.0
