"""Which of all that was tried is taken: the fastest that keeps the rules, and among equals the one closest to shipped.

Only the tuning split is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial, TrialState

from calibration import ProfileError
from policies import PolicyError
from tuning.dimension import Value
from tuning.evaluation import Evaluator
from tuning.score import Judge, Score
from tuning.space import Space
from tuning.study import score_of

EQUAL = 0.001
"""Share of a speedup that two settings may differ by and still count as equal."""

Scoring = Callable[[Mapping[str, Value]], "Score | None"]
"""Scores settings on the tuning split; None where the policy or a profile takes no such settings."""


@dataclass(frozen=True)
class Candidate:
    """Settings and what they reach on the tuning split."""

    settings: Mapping[str, Value]
    """A value for every searched setting."""
    score: Score


def scoring(space: Space, evaluator: Evaluator, judge: Judge) -> Scoring:
    """Return what scores settings on the requests of an evaluator."""

    def score(settings: Mapping[str, Value]) -> Score | None:
        try:
            return judge.score(evaluator.speedups(space.policy(settings)))
        except (PolicyError, ProfileError):
            return None

    return score


def candidates(trials: Sequence[FrozenTrial], space: Space) -> list[Candidate]:
    """Return what the finished trials tried."""
    return [
        Candidate(space.draw(optuna.trial.FixedTrial(trial.params)), score_of(trial))
        for trial in trials
        if trial.state == TrialState.COMPLETE
    ]


def best(found: Sequence[Candidate]) -> Candidate:
    """Return the fastest candidate that keeps the rules, else the one that breaks them least; the first of equals."""
    feasible = [one for one in found if one.score.feasible]
    if feasible:
        return max(feasible, key=lambda one: one.score.speedup)
    return min(found, key=lambda one: (one.score.violation, -one.score.speedup))


def simplified(candidate: Candidate, shipped: Mapping[str, Value], score: Scoring) -> Candidate:
    """Put constants back to their shipped values, one after another, as long as that costs nothing.

    Each time the one goes whose loss is the smallest, until every further one would take the speedup more than `EQUAL`
    below what was found, or break a rule that was kept.

    Args:
        candidate: what was found.
        shipped: the shipped values that may be put back.
        score: scores settings on the tuning split.
    """
    least = candidate.score.speedup * (1 - EQUAL)
    most_broken = candidate.score.violation
    while True:
        tried = [
            Candidate(settings, found)
            for name, value in candidate.settings.items()
            if value != shipped.get(name, value)
            and (found := score(settings := {**candidate.settings, name: shipped[name]})) is not None
            and found.speedup >= least
            and found.violation <= most_broken
        ]
        if not tried:
            return candidate
        candidate = max(tried, key=lambda one: one.score.speedup)
