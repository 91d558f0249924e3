"""Whether the trials of a study are those of a search; anybody may write into a file or a database."""

from __future__ import annotations

import math
import warnings

import optuna
from optuna.trial import FrozenTrial, TrialState

from tuning.errors import TuningError
from tuning.space import Space
from tuning.study import REFUSED, Place, score_of, settled


def check_trials(study: optuna.Study, space: Space, place: Place) -> None:
    """Refuse a study with a trial that nobody can choose from.

    Args:
        study: that was joined.
        space: what its trials draw from.
        place: where it is.

    Raises:
        TuningError: a trial without a value of a searched setting, or without a score.
    """
    for trial in settled(study):
        flaw = _flaw(trial, space, len(study.directions))
        if flaw:
            raise TuningError(
                f"study {place}: trial {trial.number} is none of this search ({flaw}); give another --study"
            )


def _flaw(trial: FrozenTrial, space: Space, objectives: int) -> str | None:
    if trial.state == TrialState.PRUNED:
        return None if isinstance(trial.user_attrs.get(REFUSED), str) else "it does not say why it was refused"
    fixed = optuna.trial.FixedTrial(trial.params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Optuna's way to say that a value is outside the range
        for dimension in space.dimensions:
            for name in dimension.parameters:
                if name not in trial.params:
                    return f"it has no parameter {name!r}"
            try:
                dimension.draw(fixed)
            except (ValueError, TypeError, UserWarning):
                values = [trial.params[name] for name in dimension.parameters]
                return f"{dimension.name} is not in {dimension}: drawn from {', '.join(map(repr, values))}"
    try:
        score = score_of(trial)
        numbers = [score.speedup, score.copying, score.prose, *score.violations.values(), *trial.values]
        whole = all(math.isfinite(one) for one in numbers) and len(trial.values) == objectives
    except (KeyError, TypeError, AttributeError):
        whole = False
    return None if whole else "it has no score"
