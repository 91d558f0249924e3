"""Predicted against measured: one request under one policy, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies import Policy
from simulator.recorded import Recording
from simulator.records import COUNTERS
from simulator.replay.parity import Comparison
from simulator.replay.robust import Estimate, Times, by_kind, estimate, quotient, totals
from simulator.replay.session import AGAIN, PLAIN, Session
from simulator.run import Run, ratio
from simulator.schedule import Schedule
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks
from traces import Request


@dataclass(frozen=True, slots=True)
class Kind:
    """What rounds of one kind took."""

    kind: str
    """`pipelined`, `synchronous`, `verify W` or `drains` (both ends of a pipelined stretch)."""
    rounds: int
    predicted_s: float
    measured_s: float

    def document(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "kind": self.kind,
            "rounds": self.rounds,
            "predicted_s": self.predicted_s,
            "measured_s": self.measured_s,
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """The robust decode times of a policy and of plain decoding beside it."""

    decode_s: Estimate
    plain_decode_s: Estimate
    decode_speedup: Estimate
    null_speedup: Estimate
    """Plain decoding against plain decoding again."""
    repeats: int

    def document(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "plain_decode_s": self.plain_decode_s.document(),
            "decode_s": self.decode_s.document(),
            "decode_speedup": self.decode_speedup.document(),
            "repeats": self.repeats,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request under one policy."""

    run: Run
    """The simulation."""
    schedule: Schedule
    """What the engine did."""
    predicted_speedup: Estimate
    """The decode speedup of what the engine did, by the profile; its interval is that of the profile's samples."""
    measured: Measured
    by_kind: tuple[Kind, ...]
    plain_by_kind: tuple[Kind, ...]
    prefill_s: float
    comparison: Comparison | None
    """Of a free reply with plain decoding's and the recorded one; None when forced, or as long as nobody knows."""

    @property
    def differences(self) -> dict[str, tuple[int, int]]:
        """Simulated and real value of every counter in which they differ."""
        pairs = {name: (getattr(self.run.schedule, name), getattr(self.schedule, name)) for name in COUNTERS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def same_steps(self) -> bool:
        """Whether the engine took exactly the simulated steps."""
        return not self.differences and self.run.schedule.codes == self.schedule.codes

    @property
    def error(self) -> float:
        """Predicted over measured speedup, less 1."""
        return self.predicted_speedup.median / self.measured.decode_speedup.median - 1

    def document(self) -> dict[str, Any]:
        """Return what the record of a request says beside the simulation."""
        null = self.measured.null_speedup
        return {
            "measured": self.measured.document() | {"prefill_s": self.prefill_s},
            "predicted_decode_speedup": self.predicted_speedup.document(),
            "error": self.error,
            "null_speedup": null.median,
            "null_interval": [null.low, null.high],
            "counters_equal": self.same_steps,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            **(self.comparison.document() if self.comparison else {"parity": None, "recording": None}),
            "by_kind": [part.document() for part in self.by_kind],
            "plain_by_kind": [part.document() for part in self.plain_by_kind],
        }


def outcome(
    session: Session, recording: Recording, policy: Policy, clocks: TwoClocks, resampled: Sequence[TwoClocks] = ()
) -> Outcome:
    """Hold the prediction of one request under one policy against what was measured.

    Args:
        session: what was measured.
        recording: the request.
        policy: one of the session's.
        clocks: the profile's.
        resampled: the same with costs drawn again out of the profile's samples.
    """
    request = recording.request
    run = simulate(recording, policy, clocks)
    schedules = {arm: session.schedule(request, arm) for arm in (PLAIN, str(policy))}
    return Outcome(
        run=run,
        schedule=schedules[str(policy)],
        predicted_speedup=_predicted(schedules, str(policy), recording.prompt_tokens, [clocks, *resampled]),
        measured=measured(session, [request], policy),
        by_kind=_kinds(session, request, str(policy), clocks),
        plain_by_kind=_kinds(session, request, PLAIN, clocks),
        prefill_s=session.prefill_s(request),
        comparison=session.comparison(request, policy),
    )


def measured(session: Session, requests: Sequence[Request], policy: Policy) -> Measured:
    """Return the robust times of a policy over some requests together."""
    names = {"plain": PLAIN, "again": AGAIN, "policy": str(policy)}
    repeats = min(session.complete(request) for request in requests)
    arms: dict[str, Times] = {
        short: np.concatenate([session.times(request, arm)[:repeats] for request in requests], axis=1)
        for short, arm in names.items()
    }

    sums = totals(arms)
    return Measured(
        decode_s=estimate(sums["policy"]),
        plain_decode_s=estimate(sums["plain"]),
        decode_speedup=estimate(quotient(sums["plain"], sums["policy"])),
        null_speedup=estimate(quotient(sums["plain"], sums["again"])),
        repeats=repeats,
    )


def together(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return the predicted speedup of all requests together and the measured one's counterpart: plain over policy.

    The first is by the profile, the second by the medians measured; both of summed decode times.
    """
    predicted = ratio(
        sum(part.predicted_s for one in outcomes for part in one.plain_by_kind),
        sum(part.predicted_s for one in outcomes for part in one.by_kind),
    )
    real = ratio(
        sum(part.measured_s for one in outcomes for part in one.plain_by_kind),
        sum(part.measured_s for one in outcomes for part in one.by_kind),
    )
    return predicted or 1.0, real or 1.0


def _predicted(
    schedules: Mapping[str, Schedule], policy: str, prompt_tokens: int, clocks: Sequence[TwoClocks]
) -> Estimate:
    found = []
    for one in clocks:
        plain_s, policy_s = (one.decode_s(schedules[arm].events, prompt_tokens) for arm in (PLAIN, policy))
        found.append(ratio(plain_s, policy_s) or 1.0)
    return estimate(np.array(found))


def _kinds(session: Session, request: Request, arm: str, clocks: TwoClocks) -> tuple[Kind, ...]:
    events = session.schedule(request, arm).steps
    passed_s = [0.0, *clocks.passed_s(events, len(request.prompt))]
    predicted = by_kind(events, np.diff(passed_s).tolist())
    times = session.times(request, arm)
    real = by_kind(events, np.median(times, axis=0).tolist())
    return tuple(Kind(name, count, seconds, real[name][1]) for name, (count, seconds) in predicted.items())
