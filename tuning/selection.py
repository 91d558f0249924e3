"""Which of all that was tried is taken: the fastest that keeps the rules, and among equals the one closest to shipped.

Only the tuning split is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

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


def simplified(
    fastest: Candidate, others: Sequence[Candidate], shipped: Mapping[str, Value], score: Scoring
) -> Candidate:
    """Return the one with the fewest changed constants among what is as good as the fastest.

    That is, of those that were tried, the one with the fewest; then constants are put back to their shipped values,
    one after another, and two at once where no single one can go, as long as that costs nothing: the speedup may not
    fall more than `EQUAL` below the fastest, nor a rule be broken that it keeps.

    Args:
        fastest: the best that was found.
        others: everything that was tried.
        shipped: the shipped values that may be put back.
        score: scores settings on the tuning split.
    """
    least, most_broken = fastest.score.speedup * (1 - EQUAL), fastest.score.violation

    def as_good(one: Candidate) -> bool:
        return one.score.speedup >= least and one.score.violation <= most_broken

    def changes(one: Candidate) -> list[str]:
        return [name for name, value in one.settings.items() if value != shipped.get(name, value)]

    equals = [fastest, *filter(as_good, others)]
    candidate = min(equals, key=lambda one: (len(changes(one)), -one.score.speedup))
    while True:
        for count in (1, 2):
            tried = [
                Candidate(settings, found)
                for names in combinations(changes(candidate), count)
                if (found := score(settings := {**candidate.settings, **{name: shipped[name] for name in names}}))
                is not None
            ]
            if good := list(filter(as_good, tried)):
                candidate = max(good, key=lambda one: one.score.speedup)
                break
        else:
            return candidate
