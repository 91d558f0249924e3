"""A search from the question to the answer: the study, the choice, and what the held-out requests say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial

from policies import Policy
from traces import Request
from tuning.comparison import Comparison, compare
from tuning.dimension import Value
from tuning.effect import Effect, effect
from tuning.errors import TuningError
from tuning.problem import Problem
from tuning.score import TOLERANCE
from tuning.selection import Candidate, best, candidates, scoring, simplified
from tuning.sensitivity import Constant, sensitivity
from tuning.space import changed
from tuning.storage import opened
from tuning.study import proposers, settled
from tuning.worker import Work, joined
from tuning.workers import work_together


@dataclass(frozen=True)
class Found:
    """What came out of a study; nothing in it has seen what is held out."""

    candidate: Candidate
    """What is taken: the fastest that keeps the rules, less the changes that gain nothing."""
    trials: tuple[FrozenTrial, ...]
    """The trials that are through, by number."""
    constants: tuple[Constant, ...]
    comparison: Comparison
    """The tuning split."""

    @property
    def study(self) -> str:
        """How many trials there are, and what proposed them."""
        counts = proposers(self.trials)
        who = "; ".join(one if len(counts) == 1 else f"{count} by {one}" for one, count in counts.items())
        return f"{len(self.trials)} trials{f' ({who})' if who else ''}"

    @property
    def feasible(self) -> bool:
        """Whether the rules hold on the tuning split."""
        return self.candidate.score.feasible


@dataclass(frozen=True)
class Verdict:
    """What the held-out requests say."""

    comparison: Comparison
    """The held-out split."""
    effect: Effect
    """Of what was found over the shipped constants."""

    @property
    def keeps_rules(self) -> bool:
        """Whether no rule is broken more than the shipped constants break it."""
        found, shipped = (self.comparison.score(column).violations for column in ("found", "shipped"))
        return all(amount <= max(0.0, shipped[rule]) + TOLERANCE for rule, amount in found.items())

    @property
    def recommended(self) -> bool:
        """Whether there is a gain outside noise, and no rule broken for it."""
        return self.effect.gains and self.keeps_rules


def search(task: Work, workers: int, done: Callable[[str], None] = lambda words: None) -> Found:
    """Bring a study to its trials and choose.

    Args:
        task: what to search, with the tuning split.
        workers: processes to search with.
        done: called after each trial with what it reached.

    Raises:
        TuningError: the storage does not answer, the study asks something else, or there is no trial to choose from.
        ProfileError: the shipped rules need a forward that a profile has no cost of.
    """
    work_together(task, workers, done)
    return chosen(task)


def chosen(task: Work) -> Found:
    """Choose among the finished trials of a study and the shipped constants.

    Raises:
        TuningError: the storage does not answer, or the study asks something else.
        ProfileError: the shipped rules need a forward that a profile has no cost of.
    """
    space = task.problem.space
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with opened(task.place.storage) as storage:
        study = joined(task, storage)
        trials = settled(study)
        evaluator = task.problem.evaluator(task.requests)
        judge = task.problem.judge(task.requests, evaluator)
        score = scoring(space, evaluator, judge)
        found = candidates(trials, space)
        start = score(space.defaults)
        if start is not None and space.drawn(space.defaults) is not None:
            found.insert(0, Candidate(space.defaults, start))
        if not found:
            raise TuningError(f"study {task.place}: has no settings to choose from ({len(trials)} trials, all refused)")
        candidate = simplified(best(found), found, space.reachable, score)
        return Found(
            candidate,
            tuple(trials),
            sensitivity(space, candidate, score, study),
            _compared(task.problem, task.requests, policy(task.problem, candidate)),
        )


def judged(problem: Problem, held_out: tuple[Request, ...], candidate: Candidate) -> Verdict:
    """Judge a choice by requests that the search has not seen.

    Raises:
        ProfileError: a forward that a profile has no cost of.
    """
    comparison = _compared(problem, held_out, policy(problem, candidate))
    return Verdict(comparison, effect(comparison.judge, comparison.speedups["found"]))


def policy(problem: Problem, candidate: Candidate) -> Policy:
    """Return the policy that was chosen."""
    return problem.space.policy(candidate.settings)


def changes(problem: Problem, candidate: Candidate) -> dict[str, Value]:
    """Return the constants of a choice that are not the shipped ones, the fixed ones among them."""
    chosen = policy(problem, candidate)
    return {} if chosen == problem.shipped else changed(chosen.settings, problem.space.kind)


def _compared(problem: Problem, requests: tuple[Request, ...], found: Policy) -> Comparison:
    evaluator = problem.evaluator(requests)
    judge = problem.judge(requests, evaluator)
    return compare(evaluator, judge, found, problem.shipped, bounded=problem.service is None)
