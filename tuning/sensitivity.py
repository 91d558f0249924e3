"""How much each constant matters, and how flat the top is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna

from tuning.dimension import Dimension, Value
from tuning.selection import EQUAL, Candidate, Scoring
from tuning.space import Space
from tuning.study import score_of, settled

LEAST_TRIALS = 20
"""Trials below which nothing is said about importance."""


@dataclass(frozen=True)
class Constant:
    """One searched setting, around the settings that were found."""

    name: str
    shipped: Value
    found: Value
    cost: float | None
    """Share of the speedup that is lost when this one alone is put back to its shipped value; None if it cannot be."""
    obstacle: str | None
    """Why it cannot: the policy or a profile refuses that, or a rule breaks."""
    curve: tuple[tuple[Value, float | None], ...]
    """Values, and the speedup with each in place of the found one; None where a rule breaks or no such value works."""
    importance: float | None
    """Its share in what tells the better tenth of the trials from the rest (PED-ANOVA); None for too few trials."""

    @property
    def flat(self) -> tuple[Value, Value]:
        """The ends of the stretch of the curve around what was found that is as fast as that."""
        values = [value for value, _ in self.curve]
        middle = values.index(self.found)
        top = self.curve[middle][1]
        as_fast = [
            top is not None and speedup is not None and speedup >= top * (1 - EQUAL) for _, speedup in self.curve
        ]
        first = last = middle
        while first > 0 and as_fast[first - 1]:
            first -= 1
        while last + 1 < len(values) and as_fast[last + 1]:
            last += 1
        return values[first], values[last]


def sensitivity(space: Space, candidate: Candidate, score: Scoring, study: optuna.Study) -> tuple[Constant, ...]:
    """Vary every searched setting around a candidate, one at a time."""
    shares = importances(study)
    return tuple(
        _constant(dimension, space.defaults[dimension.name], candidate, score, shares) for dimension in space.dimensions
    )


def importances(study: optuna.Study) -> Mapping[str, float] | None:
    """Return each parameter's importance for the speedup; None for too few trials."""
    trials = [trial for trial in settled(study) if trial.values is not None]
    if len(trials) < LEAST_TRIALS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Optuna looks for what makes a target low.
            return optuna.importance.get_param_importances(study, target=lambda trial: -score_of(trial).speedup)
        except (ValueError, RuntimeError):
            return None  # Optuna's way to say that the trials hardly differ


def _constant(
    dimension: Dimension, shipped: Value, candidate: Candidate, score: Scoring, shares: Mapping[str, float] | None
) -> Constant:
    name, found = dimension.name, candidate.settings[dimension.name]

    def reached(value: Value) -> float | None:
        if value == found:
            return candidate.score.speedup
        one = score({**candidate.settings, name: value})
        return one.speedup if one is not None and one.violation <= candidate.score.violation else None

    back = score({**candidate.settings, name: shipped})
    obstacle = None
    if back is None or back.violation > candidate.score.violation:
        obstacle = "refused" if back is None else "breaks a rule"
    return Constant(
        name=name,
        shipped=shipped,
        found=found,
        cost=None if back is None or obstacle else 1 - back.speedup / candidate.score.speedup,
        obstacle=obstacle,
        curve=tuple((value, reached(value)) for value in dimension.around(found)),
        importance=None if shares is None else sum(shares.get(one, 0.0) for one in dimension.parameters),
    )


def order(constants: Sequence[Constant]) -> list[Constant]:
    """Return the constants, those that matter most first."""
    return sorted(constants, key=lambda one: -(one.importance if one.importance is not None else abs(one.cost or 0.0)))
