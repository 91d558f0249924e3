"""A study by name: made by whoever comes first, joined by whoever brings the same question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from tuning.errors import TuningError
from tuning.score import Score
from tuning.storage import shown

DIGESTS = "digests"
"""The user attribute of a study that says what it asks."""
SCORE = "score"
"""The user attribute of a trial that says what it reached."""
PROPOSED_BY = "proposed by"
"""The user attribute of a trial that says which sampler proposed its settings, with which seed."""
REFUSED = "refused"
"""The user attribute of a trial that says why its settings could not be tried."""


@dataclass(frozen=True)
class Place:
    """Where a study is."""

    storage: str
    """A file, or the URL of a database."""
    name: str

    def __str__(self) -> str:
        """Say it, without a password."""
        return f"{self.name} in {shown(self.storage)}"


def join(
    storage: BaseStorage, place: Place, digests: Mapping[str, str], sampler: BaseSampler, *, objectives: int = 1
) -> tuple[optuna.Study, bool]:
    """Join a study, or make it; say whether it was made.

    Args:
        storage: where it is, opened.
        place: where that is, and its name.
        digests: what the study asks, by part.
        sampler: what proposes its trials.
        objectives: how many values a trial has, all to be maximised.

    Raises:
        TuningError: the study of that name asks something else.
    """
    try:
        study = optuna.create_study(
            study_name=place.name, storage=storage, sampler=sampler, directions=["maximize"] * objectives
        )
        made = True
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(study_name=place.name, storage=storage, sampler=sampler)
        made = False
    if DIGESTS not in study.user_attrs:
        if study.directions != [StudyDirection.MAXIMIZE] * objectives:
            asked = ", ".join(direction.name.lower() for direction in study.directions)
            raise TuningError(f"study {place}: must maximise {objectives} value{'s' * (objectives > 1)} (got {asked})")
        # Also when whoever made it was killed before this line, or has not come to it yet: then both write the same,
        # or the slower one is refused below.
        study.set_user_attr(DIGESTS, dict(digests))
    known = study.user_attrs[DIGESTS]
    if not isinstance(known, Mapping):
        known = {}
    for part, digest in digests.items():
        if known.get(part) != digest:
            raise TuningError(
                f"study {place}: the digest of its {part} is {known.get(part)} (got {digest}); "
                "another question needs another --study"
            )
    return study, made


def settled(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that are through: with a score, or with settings that could not be tried."""
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def proposers(trials: Iterable[FrozenTrial]) -> dict[str, int]:
    """Return how many trials each sampler and seed proposed, first come first."""
    return dict(Counter(str(trial.user_attrs.get(PROPOSED_BY, "somebody else")) for trial in trials))


def running(study: optuna.Study) -> int:
    """Return how many trials somebody is at, or was until lately."""
    return len(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))


def score_document(score: Score) -> dict[str, Any]:
    """Return what a trial keeps of its score."""
    return {
        "speedup": score.speedup,
        "copying": score.copying,
        "prose": score.prose,
        "violations": dict(score.violations),
    }


def score_of(trial: FrozenTrial) -> Score:
    """Read a trial's score back."""
    return Score(**trial.user_attrs[SCORE])
