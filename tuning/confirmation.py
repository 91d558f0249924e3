"""Whether a recommendation holds on the real engine: what was found, the shipped constants and plain decoding.

They are forced along the held-out replies, interleaved in random order within every round; the worst round counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies import Policy
from simulator.recorded import Recording
from simulator.replay.outcome import Outcome, outcome
from simulator.replay.robust import Times
from simulator.replay.session import AGAIN, PLAIN, Session
from simulator.run import ratio
from simulator.two_clocks import TwoClocks
from traces import Request
from tuning.kinds import is_prose
from tuning.score import TOLERANCE, Judge, Rules

COLUMNS = ("plain again", "shipped", "found")
"""What is held against plain decoding; the first shows what noise alone does."""

Row = tuple[float, ...]
"""Decode speedups over plain decoding, one a request."""


@dataclass(frozen=True)
class Confirmation:
    """What an engine said of settings, beside the prediction; every figure is of decode times."""

    model: str
    """Model, dtype and device, as a report writes them."""
    tokens: int | None
    """How many tokens of every reply were decoded at most."""
    requests: tuple[Request, ...]
    predicted: Mapping[str, Row]
    """By column."""
    measured: Mapping[str, Row]
    """By column, from the medians of every step over the rounds."""
    rounds: Mapping[str, tuple[Row, ...]]
    """By column, each round by itself."""
    slow: tuple[str, ...]
    """Prose requests that what was found slows down: their interval lies below the floor, what the shipped constants
    were measured at and what was predicted, by more than plain decoding differs from itself."""
    rules: Rules

    def overall(self, row: Row) -> float:
        """Return the objective of a row: the weighted geometric mean over categories."""
        return Judge(self.requests, self.rules, (row,)).machine(row)

    def worst_prose(self, row: Row) -> float | None:
        """Return the slowest request of free prose in a row; None without any."""
        return min((row[place] for place, one in enumerate(self.requests) if is_prose(one)), default=None)

    def worst(self, column: str) -> float:
        """Return the objective of a column in its worst round."""
        return min(map(self.overall, self.rounds[column]))

    @property
    def predicted_gain(self) -> float:
        """What was found over the shipped constants, as predicted."""
        return self.overall(self.predicted["found"]) / self.overall(self.predicted["shipped"])

    @property
    def gain(self) -> float:
        """The same as measured over all rounds."""
        return self.overall(self.measured["found"]) / self.overall(self.measured["shipped"])

    @property
    def worst_gain(self) -> float:
        """The same in the round in which it is the least."""
        pairs = zip(self.rounds["found"], self.rounds["shipped"], strict=True)
        return min(self.overall(found) / self.overall(shipped) for found, shipped in pairs)

    @property
    def holds(self) -> bool:
        """Whether what was found is faster than the shipped constants in every round, and slows down no prose."""
        return self.worst_gain > 1 and not self.slow

    def __str__(self) -> str:
        """Write what came out in a line."""
        count = len(self.rounds["found"])
        worst = f"in the worst of {count} rounds" if count > 1 else "in the one round"
        slow = f"; it slows down {', '.join(self.slow)}" if self.slow else ""
        return (
            f"{self.worst_gain:.3f} times as fast as the shipped constants {worst}, "
            f"{self.gain:.3f} over all, {self.predicted_gain:.3f} predicted{slow}"
        )

    def document(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "model": self.model,
            "tokens": self.tokens,
            "requests": [request.id for request in self.requests],
            "predicted": {column: list(row) for column, row in self.predicted.items()},
            "measured": {column: list(row) for column, row in self.measured.items()},
            "rounds": {column: [list(row) for row in rows] for column, rows in self.rounds.items()},
            "gain": {"predicted": self.predicted_gain, "measured": self.gain, "worst": self.worst_gain},
            "slow": list(self.slow),
            "holds": self.holds,
        }


def confirmation(session: Session, found: Policy, shipped: Policy, rules: Rules, tokens: int | None) -> Confirmation:
    """Return what a session says of a recommendation.

    Args:
        session: one of these two policies, whole.
        found: the policy with the settings that were found.
        shipped: the same with its shipped constants.
        rules: what counts, and what may not be lost.
        tokens: to how many tokens the replies were cut.
    """
    clocks = TwoClocks(session.setup.costs)
    requests = session.requests
    both = [
        {
            name: outcome(session, Recording(one), policy, clocks)
            for name, policy in (("shipped", shipped), ("found", found))
        }
        for one in requests
    ]
    arms = {"plain again": AGAIN, "shipped": str(shipped), "found": str(found)}
    times = [{arm: session.times(one, arm)[: session.repeats] for arm in (PLAIN, *arms.values())} for one in requests]
    engine = session.engine
    return Confirmation(
        model=f"{engine['model']} {engine['dtype']} on {engine['device']}",
        tokens=tokens,
        requests=requests,
        predicted={
            "plain again": (1.0,) * len(requests),
            **{name: tuple(one[name].predicted_speedup.median for one in both) for name in ("shipped", "found")},
        },
        measured={
            "plain again": tuple(one["found"].measured.null_speedup.median for one in both),
            **{name: tuple(one[name].measured.decode_speedup.median for one in both) for name in ("shipped", "found")},
        },
        rounds={column: _rounds(times, arm, session.repeats) for column, arm in arms.items()},
        slow=tuple(_slow(requests, both, rules.floor)),
        rules=rules,
    )


def _rounds(times: Sequence[Mapping[str, Times]], arm: str, repeats: int) -> tuple[Row, ...]:
    """Return an arm's speedups over plain decoding, round by round."""
    return tuple(
        tuple(ratio(float(one[PLAIN][place].sum()), float(one[arm][place].sum())) or 1.0 for one in times)
        for place in range(repeats)
    )


def _slow(requests: Sequence[Request], both: Sequence[Mapping[str, Outcome]], floor: float) -> list[str]:
    """Return the prose requests whose interval lies below the floor and below what excuses that.

    The shipped constants may be as slow; and the floor is for whole replies, where the prediction keeps it, so the
    beginning of one need be no faster than was predicted of it. What plain decoding differs from itself by is noise.
    """
    found = []
    for request, one in zip(requests, both, strict=True):
        excused = one["shipped"].measured.decode_speedup.median, one["found"].predicted_speedup.median
        noise = max(abs(1 - one["found"].measured.null_speedup.median), TOLERANCE)
        limit = min(floor, *excused) - noise
        if is_prose(request) and one["found"].measured.decode_speedup.high < limit:
            found.append(request.id)
    return found
