"""What `replay` prints: predicted against measured, request by request and kind by kind, and the answer last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration import Profile
from policies import Policy
from simulator.recorded import Recording
from simulator.replay.outcome import Measured, Outcome, measured, outcome, predicted_speedup
from simulator.replay.parity import SAME
from simulator.replay.robust import Estimate
from simulator.replay.session import Mode, Session
from simulator.report import Row, fixed, heading, table
from simulator.results import Result
from simulator.run import kind_order
from simulator.two_clocks import TwoClocks


@dataclass(frozen=True)
class Answer:
    """One policy on a trace."""

    policy: Policy
    result: Result
    """The simulation, with what was measured in its records."""
    outcomes: tuple[Outcome, ...]
    """One a request."""
    together: Measured
    """All requests."""

    @property
    def predicted_speedup(self) -> float:
        """The decode speedup of all requests together by the profile."""
        return predicted_speedup(self.outcomes)

    @property
    def error(self) -> float:
        """Predicted over measured speedup of all requests together, less 1."""
        return self.predicted_speedup / self.together.decode_speedup.median - 1

    def defects(self, excused: bool) -> list[str]:
        """Return what must not be, a line each.

        Args:
            excused: whether the recording was made otherwise, so that another reply is no defect.
        """
        found = []
        for one in self.outcomes:
            where = f"{self.policy}, request {one.run.request.id!r}"
            compared = one.comparison
            if one.plain_parity.verdict == "differs":
                found.append(
                    f"request {one.run.request.id!r}: plain decoding does not repeat itself: {one.plain_parity}"
                )
            if compared and compared.parity.verdict == "differs":
                found.append(f"{where}: the reply is not plain decoding's: {compared.parity}")
            elif compared and compared.recording.verdict == "differs" and not excused:
                found.append(f"{where}: the reply is not the recorded one: {compared.recording}")
            if (one.forced or (compared and compared.recording == SAME)) and not one.same_steps:
                found.append(f"{where}: the engine took other steps than the simulation: {_listed(one.differences)}")
        return found


def answers(
    session: Session, clocks: TwoClocks, header: dict[str, Any], resampled: Sequence[TwoClocks] = ()
) -> list[Answer]:
    """Return what a session says about every policy."""
    found = []
    recordings = [Recording(request) for request in session.requests]
    for policy in session.setup.policies:
        result = Result(policy, session.setup.trace, header)
        outcomes = tuple(outcome(session, recording, policy, clocks, resampled) for recording in recordings)
        for one in outcomes:
            result.add(one.run, events=True)
            result.records[-1] |= one.document()
        found.append(Answer(policy, result, outcomes, measured(session, session.requests, policy)))
    return found


def document(
    session: Session, answer: Answer, profile: Profile, notes: Sequence[str], defects: Sequence[str]
) -> dict[str, Any]:
    """Return the JSON document of one policy."""
    found = answer.result.document(profile.name, notes)
    found["total"] |= {
        "measured": answer.together.document(),
        "predicted_decode_speedup": answer.predicted_speedup,
        "error": answer.error,
        "null_speedup": answer.together.null_speedup.median,
    }
    setup = session.setup
    return found | {
        "mode": setup.mode,
        "repeats": session.repeats,
        "missing_runs": session.left,
        "engine": session.engine,
        "seed": setup.seed,
        "defects": list(defects),
    }


def text(session: Session, found: Sequence[Answer], profile: Profile, notes: Sequence[str], named: bool) -> str:
    """Return the readable report.

    Args:
        session: what was measured.
        found: what it says of each policy.
        profile: what is predicted by.
        notes: what a report that stands on it must say.
        named: whether the user named the profile.
    """
    setup = session.setup
    count = len(session.requests)
    engine = session.engine
    lines = [
        f"trace    {setup.trace}: {count} request{'s' * (count > 1)}, {setup.mode}, {_tokens(session)}, "
        f"{session.repeats} repeat{'s' * (session.repeats > 1)}; step times are medians over them",
        f"engine   {engine.get('model')} {engine.get('dtype')} on {engine.get('device')}, mlx {engine.get('mlx')}, "
        f"mlx-lm {engine.get('mlx_lm')}",
    ]
    blocks = [
        "\n".join([heading(profile, notes, named), *lines]),
        _requests(session, found),
        *(_kinds(answer) for answer in found),
    ]
    return "\n\n".join([*blocks, "\n".join(map(_closing, found))])


def _tokens(session: Session) -> str:
    count = sum(len(request.reply) for request in session.requests)
    return f"{count} recorded token{'s' * (count > 1)}"


def _requests(session: Session, found: Sequence[Answer]) -> str:
    rows: list[Row] = [
        (
            *("request", "policy", "predicted", "from", "to", "measured", "from", "to"),
            *("error", "null", "counters", "reply"),
        )
    ]
    pairs = [(one, answer) for answer in found for one in answer.outcomes]
    for one, answer in sorted(pairs, key=lambda pair: -abs(pair[0].error)):
        speedups = (one.predicted_speedup, one.measured.decode_speedup)
        rows.append(
            (
                one.run.request.id,
                str(answer.policy),
                *(figure for speedup in speedups for figure in (f"{speedup.median:.3f}", *_interval(speedup))),
                _percent(one.error),
                f"{one.measured.null_speedup.median:.3f}",
                "equal" if one.same_steps else "differ",
                _reply(one, session.setup.mode),
            )
        )
    return "decode speedup, the worst first\n" + table(rows)


def _interval(speedup: Estimate) -> tuple[str, str]:
    """Return both ends, if there was anything to draw again: several repeats, or the samples of a profile."""
    return (f"{speedup.low:.3f}", f"{speedup.high:.3f}") if speedup.low < speedup.high else ("-", "-")


def _reply(one: Outcome, mode: Mode) -> str:
    compared = one.comparison
    if compared is None:
        return "forced" if mode == "forced" else "not compared yet"
    return str(compared.parity) if compared.recording == SAME else f"{compared.parity}; recording {compared.recording}"


def _kinds(answer: Answer) -> str:
    """Show, for the policy and for plain decoding, where prediction and measurement part."""
    rows: list[Row] = [(f"{answer.policy}, ms", "rounds", "predicted", "measured", "error")]
    for title, parts in (
        ("", [part for one in answer.outcomes for part in one.by_kind]),
        ("plain: ", [part for one in answer.outcomes for part in one.plain_by_kind]),
    ):
        for kind in sorted({part.kind for part in parts}, key=kind_order):
            own = [part for part in parts if part.kind == kind]
            predicted_s, measured_s = (sum(part.predicted_s for part in own), sum(part.measured_s for part in own))
            rows.append(
                (
                    f"{title}{kind}",
                    str(sum(part.rounds for part in own)),
                    fixed(predicted_s * 1000),
                    fixed(measured_s * 1000),
                    _percent(predicted_s / measured_s - 1) if measured_s else "-",
                )
            )
    return table(rows)


def _closing(answer: Answer) -> str:
    speedup = answer.together.decode_speedup
    low, high = _interval(speedup)
    return (
        f"{answer.policy}: {answer.predicted_speedup:.3f} times plain decoding predicted, {speedup.median:.3f} measured"
        f"{'' if low == '-' else f' ({low} to {high})'}; the prediction is off by {_percent(answer.error)}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:+.1f} %"


def _listed(differences: dict[str, tuple[int, int]]) -> str:
    if not differences:
        return "the same counts in another order"
    return ", ".join(f"{name} {ours} simulated, {theirs} real" for name, (ours, theirs) in differences.items())
