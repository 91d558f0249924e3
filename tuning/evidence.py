"""What a maintainer would write beside a constant: its value, what it was derived from, and how well it holds."""

from __future__ import annotations

from collections.abc import Mapping

from tuning.answer import Answer
from tuning.dimension import shown
from tuning.effect import requests


def evidence(answer: Answer, day: str) -> dict[str, str]:
    """Return the evidence for what was found, by heading.

    Args:
        answer: what came out.
        day: the date, as in 2026-10-02.
    """
    inquiry, found, verdict = answer.inquiry, answer.found, answer.verdict
    profiles = ", ".join(profile.name for profile in inquiry.problem.profiles)
    sources = ", ".join(trace.source for trace in inquiry.traces)
    held_out = f"{verdict.effect} the shipped constants, {verdict.effect.said}"
    if verdict.comparison.judge.prose:
        held_out += f"; slowest prose request {verdict.comparison.score('found').prose:.3f} times plain decoding"
    digests = ", ".join(f"{part} {digest}" for part, digest in answer.task.digests.items())
    confirmed = answer.confirmation
    measured = {"measured": f"{confirmed}; {confirmed.model}"} if confirmed else {}
    return {
        "recommended": "yes" if answer.recommended else f"no: {answer.reason}",
        "value": values(answer.changes),
        "derived_from": (f"{requests(len(inquiry.split.tuning))} for tuning of {sources} on {profiles}; {found.study}"),
        "held_out": held_out,
        **measured,
        "date": day,
        "digests": digests,
    }


def values(changes: Mapping[str, object]) -> str:
    """Write constants in a line.

    >>> values({"full_at": 1.75, "narrow": 3}), values({})
    ('full_at 1.75, narrow 3', 'the shipped constants')
    """
    words = [f"{name} {shown(value) if value is None else value}" for name, value in changes.items()]
    return ", ".join(words) or "the shipped constants"
