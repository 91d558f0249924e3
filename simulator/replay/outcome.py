"""Predicted against measured: one request under one policy, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies import Policy
from simulator.recorded import Recording
from simulator.records import COUNTERS
from simulator.replay.parity import SAME, Comparison, Parity
from simulator.replay.robust import Estimate, Sums, by_kind, estimate, quotient, totals
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
    forced: bool
    """Whether it was made to do what the recorded reply implies."""
    predicted_speedup: Estimate
    """The decode speedup of what the engine did, by the profile; its interval is that of the profile's samples."""
    measured: Measured
    by_kind: tuple[Kind, ...]
    plain_by_kind: tuple[Kind, ...]
    prefill_s: float
    comparison: Comparison | None
    """Of a free reply with plain decoding's and the recorded one; None when forced, or as long as nobody knows."""
    plain_parity: Parity
    """Of plain decoding with itself."""
    unlike: int
    """Repeats that do not count, because the engine did or said something else in them."""
    scale: float
    """Tokens that plain decoding said for each of the policy's."""

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
            "unlike_repeats": self.unlike,
            "counters_equal": self.same_steps,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            **(self.comparison.document() if self.comparison else {"parity": None, "recording": None}),
            "plain_parity": self.plain_parity.document() if self.comparison else None,
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
    arm = str(policy)
    run = simulate(recording, policy, clocks)
    plain, schedule = session.schedule(request, PLAIN), session.schedule(request, arm)
    scale = session.scale(request, arm)
    of_plain = session.comparison(request, PLAIN)
    return Outcome(
        run=run,
        schedule=schedule,
        forced=session.setup.mode == "forced",
        predicted_speedup=_predicted(plain, schedule, scale, recording.prompt_tokens, [clocks, *resampled]),
        measured=measured(session, [request], policy),
        by_kind=_kinds(session, request, arm, clocks),
        plain_by_kind=_kinds(session, request, PLAIN, clocks),
        prefill_s=session.prefill_s(request),
        comparison=session.comparison(request, arm),
        plain_parity=of_plain.parity if of_plain else SAME,
        unlike=session.unlike(request),
        scale=scale,
    )


def measured(session: Session, requests: Sequence[Request], policy: Policy) -> Measured:
    """Return the robust times of a policy over some requests together: of as many repeats as all of them have.

    Speedups are those of equally many tokens: a free reply that became longer or shorter than plain decoding's counts
    token for token.
    """
    own = str(policy)
    repeats = min(len(session.alike(request)) for request in requests)
    # The same repeats are drawn for every request, so what is drawn may be added up.
    sums = [totals({arm: session.times(request, arm)[:repeats] for arm in (PLAIN, AGAIN, own)}) for request in requests]

    def total(arm: str, *, scaled: bool = False) -> Sums:
        scales = [session.scale(request, arm) if scaled else 1.0 for request in requests]
        found: Sums = np.sum([one[arm] * scale for one, scale in zip(sums, scales, strict=True)], axis=0)
        return found

    return Measured(
        decode_s=estimate(total(own)),
        plain_decode_s=estimate(total(PLAIN)),
        decode_speedup=estimate(quotient(total(PLAIN), total(own, scaled=True))),
        null_speedup=estimate(quotient(total(PLAIN), total(AGAIN, scaled=True))),
        repeats=repeats,
    )


def predicted_speedup(outcomes: Sequence[Outcome]) -> float:
    """Return the decode speedup of all requests together by the profile, of summed times of equally many tokens."""
    found = ratio(
        sum(part.predicted_s for one in outcomes for part in one.plain_by_kind),
        sum(part.predicted_s * one.scale for one in outcomes for part in one.by_kind),
    )
    return found or 1.0


def _predicted(
    plain: Schedule, schedule: Schedule, scale: float, prompt_tokens: int, clocks: Sequence[TwoClocks]
) -> Estimate:
    found = []
    for one in clocks:
        plain_s, policy_s = (one.decode_s(steps.events, prompt_tokens) for steps in (plain, schedule))
        found.append(ratio(plain_s, policy_s * scale) or 1.0)
    return estimate(np.array(found))


def _kinds(session: Session, request: Request, arm: str, clocks: TwoClocks) -> tuple[Kind, ...]:
    events = session.schedule(request, arm).steps
    passed_s = [0.0, *clocks.passed_s(events, len(request.prompt))]
    predicted = by_kind(events, np.diff(passed_s).tolist())
    times = session.times(request, arm)
    real = by_kind(events, np.median(times, axis=0).tolist())
    return tuple(Kind(name, count, seconds, real[name][1]) for name, (count, seconds) in predicted.items())
