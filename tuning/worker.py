"""What one worker does: ask a study for settings, say what they reach on the tuning split, and ask again.

A worker is given the tuning split and nothing else that was said.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from calibration import ProfileError
from calibration.host_clock import HostClock
from policies import PolicyError
from traces import Request
from tuning.evaluation import Evaluator
from tuning.lease import LEASE_S, Lease, fail_lost, tell
from tuning.problem import Problem
from tuning.samplers import points, sampler
from tuning.score import Judge, Score
from tuning.storage import opened
from tuning.study import PROPOSED_BY, REFUSED, SCORE, Place, join, running, score_document, settled
from tuning.trials import check_trials

PAUSE_S = 0.05
"""How long a worker waits before it looks again whether the others are through."""
WORST = 1e6
"""By how much settings that cannot be tried break a rule: more than any others."""
PENALTY = 10.0
"""Speedup that CMA-ES is told to lose for each 1 by which a rule is broken; it knows no constraints."""


@dataclass(frozen=True)
class Work:
    """What a worker has to know."""

    problem: Problem
    requests: tuple[Request, ...]
    """The tuning split."""
    place: Place
    digests: dict[str, str]
    """What the study asks; that of what is held out is among it, and nothing else of it."""
    sampler: str = "tpe"
    seed: int = 0
    trials: int | None = None
    """Trials that the study shall have when the work is done; None leaves it to `seconds`."""
    seconds: float = math.inf
    """How long to go on."""
    lease_s: float = LEASE_S
    """How long a running trial is believed in without a word from its worker."""

    @property
    def proposer(self) -> str:
        """What proposes the settings, in words."""
        return f"{self.sampler}, seed {self.seed}"

    @property
    def goal(self) -> float:
        """How many trials to stop at; a grid has no more than its points."""
        wanted = math.inf if self.trials is None else self.trials
        return min(wanted, points(self.problem.space)) if self.sampler == "grid" else wanted


def work(task: Work, done: Callable[[str], None] = lambda words: None) -> None:
    """Work until the study has its trials or the time is up.

    Args:
        task: what to do.
        done: called after each trial with what it reached.

    Raises:
        TuningError: the storage does not answer, or the study asks something else.
        ProfileError: the shipped rules need a forward that a profile has no cost of.
    """
    clock = HostClock()
    end_s = clock.clock_s() + task.seconds
    evaluator = task.problem.evaluator(task.requests)
    judge = task.problem.judge(task.requests, evaluator)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with opened(task.place.storage) as storage:
        study = joined(task, storage)
        pause = threading.Event()
        while (left := task.goal - len(settled(study))) > 0 and clock.clock_s() < end_s:
            fail_lost(study, task.lease_s)
            if running(study) >= left:
                # The others are at the last ones; should one of them be gone, its lease will be over.
                pause.wait(PAUSE_S)
                continue
            score = one_trial(study, task, evaluator, judge)
            done(f"{score.speedup:.3f}" if score else "refused")


def joined(task: Work, storage: BaseStorage) -> optuna.Study:
    """Join the study of a task, or make it, with the shipped constants as its first trial.

    Args:
        task: what is asked.
        storage: the task's, opened.

    Raises:
        TuningError: the study asks something else, or has trials that are none of this search.
    """
    space = task.problem.space
    objectives = 2 if task.sampler == "nsgaii" else 1
    study, made = join(
        storage,
        task.place,
        task.digests,
        sampler(task.sampler, space, task.seed),
        objectives=objectives,
    )
    fail_lost(study, task.lease_s)
    check_trials(study, space, task.place)
    shipped = space.drawn(space.defaults)
    if made and shipped is not None and task.sampler != "grid":
        study.enqueue_trial(shipped)
    return study


def one_trial(study: optuna.Study, task: Work, evaluator: Evaluator, judge: Judge) -> Score | None:
    """Ask for settings and tell what they reach; None where they could not be tried or the trial was taken away."""
    try:
        trial = study.ask()
    except UpdateFinishedTrialError:
        return None  # it took so long to propose that somebody has failed the trial
    try:
        with Lease(trial, task.lease_s):
            trial.set_user_attr(PROPOSED_BY, task.proposer)
            score = _scored(trial, task, evaluator, judge)
    except UpdateFinishedTrialError:
        return None  # our lease was over, and somebody has failed the trial
    except Exception:
        tell(study, trial, state=TrialState.FAIL)
        raise
    if score is None:
        tell(study, trial, state=TrialState.PRUNED)
    else:
        tell(study, trial, _values(score, task.sampler))
    return score


def _scored(trial: optuna.Trial, task: Work, evaluator: Evaluator, judge: Judge) -> Score | None:
    space = task.problem.space
    settings = space.draw(trial)
    try:
        score = judge.score(evaluator.speedups(space.policy(settings)))
    except (PolicyError, ProfileError) as error:
        trial.set_user_attr(REFUSED, str(error))
        # Or TPE would take such a trial for better than one that breaks a rule.
        trial.set_constraint(REFUSED, WORST)
        return None
    trial.set_user_attr(SCORE, score_document(score))
    for name, violation in score.violations.items():
        trial.set_constraint(name, violation)
    return score


def _values(score: Score, name: str) -> float | tuple[float, float]:
    if name == "nsgaii":
        return score.copying, score.prose
    return score.speedup - (PENALTY * score.violation if name == "cmaes" else 0.0)
