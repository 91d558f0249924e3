"""Which of all that was tried is taken: the fastest that keeps the rules, and among equals the one closest to shipped.

Only the tuning split is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import optuna
from optuna.trial import FrozenTrial, TrialState

from calibration import ProfileError
from policies import Policy, PolicyError
from tuning.dimension import Value
from tuning.evaluation import Evaluator
from tuning.score import TOLERANCE, Judge, Score
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
    """Return what scores settings on the requests of an evaluator, the same ones once only."""

    @cache
    def scored(policy: Policy) -> Score | None:
        try:
            return judge.score(evaluator.speedups(policy))
        except ProfileError:
            return None

    def score(settings: Mapping[str, Value]) -> Score | None:
        try:
            policy = space.policy(settings)
        except PolicyError:
            return None
        return scored(policy)

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

    From the fastest, and from the one with the fewest changes of those that were tried, constants are put back to their
    shipped values as long as what is left is as good.

    Args:
        fastest: the best that was found.
        others: everything that was tried.
        shipped: the shipped values that may be put back.
        score: scores settings on the tuning split.
    """
    equals = Equals(fastest, shipped, score)
    fewest = min([fastest, *filter(equals.holds, others)], key=equals.cost)
    starts = [fastest, fewest] if equals.cost(fewest)[0] < equals.cost(fastest)[0] else [fastest]
    return min(map(equals.simplest, starts), key=equals.cost)


@dataclass(frozen=True)
class Equals:
    """What is as good as the fastest: no more than `EQUAL` slower, and breaking the rules no more."""

    fastest: Candidate
    shipped: Mapping[str, Value]
    score: Scoring

    def holds(self, one: Candidate) -> bool:
        """Return whether a candidate is one of them."""
        least, most_broken = self.fastest.score.speedup * (1 - EQUAL), self.fastest.score.violation
        return one.score.speedup >= least and one.score.violation <= most_broken + TOLERANCE

    def cost(self, one: Candidate) -> tuple[int, float]:
        """Return what is to be as small as it can be: the changed constants, and among as many the time."""
        return len(self._changes(one)), -one.score.speedup

    def simplest(self, candidate: Candidate) -> Candidate:
        """Put constants back one after another, the one that costs least first, and two where no single one can go."""
        while True:
            for count in (1, 2):
                if found := list(filter(self.holds, self._with_back(candidate, count))):
                    candidate = max(found, key=lambda one: one.score.speedup)
                    break
            else:
                return candidate

    def _changes(self, one: Candidate) -> list[str]:
        return [name for name, value in one.settings.items() if value != self.shipped.get(name, value)]

    def _with_back(self, candidate: Candidate, count: int) -> Iterator[Candidate]:
        for names in combinations(self._changes(candidate), count):
            settings = {**candidate.settings, **{name: self.shipped[name] for name in names}}
            score = self.score(settings)
            if score is not None:
                yield Candidate(settings, score)
