"""Optuna's samplers by name, with every draw keyed by the seed and the trial's number.

A sampler that runs on from draw to draw would begin again whenever a study is resumed, and two machines with one seed
would try the same points. Keyed, a trial depends on the seed, its number and what is finished before it, on nothing
else: one worker repeats a study exactly, in one go or in several.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from traces import Request
from tuning.errors import TuningError
from tuning.kinds import category, copies, is_prose
from tuning.space import Space

NAMES = ("tpe", "random", "grid", "cmaes", "nsgaii")
"""What `--sampler` takes."""
MOST_POINTS = 100_000
"""Points of the largest grid; Optuna keeps them all in memory."""


class Keyed(BaseSampler):
    """A sampler made afresh for every trial."""

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        """Keep how to make a sampler of some seed."""
        self._make = make
        self._seed = seed
        self._number: int | None = None
        self._sampler = make(seed)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Ask the trial's sampler."""
        with quiet():
            return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask the trial's sampler."""
        with quiet():
            return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Ask the trial's sampler."""
        with quiet():
            return self._of(trial).sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Tell the trial's sampler."""
        with quiet():
            self._of(trial).before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell the trial's sampler."""
        with quiet():
            self._of(trial).after_trial(study, trial, state, values)

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if trial.number != self._number:
            key = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
            self._number, self._sampler = trial.number, self._make(int(key[0]))
        return self._sampler


class Grid(optuna.samplers.GridSampler):
    """Every point of a grid in an order that the seed shuffles; how many are tried is the caller's business.

    A point whose trial failed, because its worker was killed, is one to be tried; to Optuna's own grid it is done.
    """

    def _get_unvisited_grid_ids(self, study: optuna.Study) -> list[int]:
        states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
        taken = {one.system_attrs.get("grid_id") for one in study.get_trials(deepcopy=False, states=states)}
        return [point for point in range(self._n_min_trials) if point not in taken]

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Do nothing, where Optuna's own would stop a loop that is not Optuna's."""


def sampler(name: str, space: Space, seed: int) -> BaseSampler:
    """Return a sampler by name.

    Raises:
        TuningError: there is none, or a grid that is too large.
    """
    match name:
        case "tpe":
            return Keyed(lambda key: optuna.samplers.TPESampler(seed=key), seed)
        case "random":
            return Keyed(lambda key: optuna.samplers.RandomSampler(seed=key), seed)
        case "cmaes":
            return Keyed(lambda key: optuna.samplers.CmaEsSampler(seed=key), seed)
        case "nsgaii":
            return Keyed(lambda key: optuna.samplers.NSGAIISampler(seed=key), seed)
        case "grid":
            points(space)
            return Grid(space.grid, seed=seed)
    raise TuningError(f"no sampler named {name!r} (have: {', '.join(NAMES)})")


def check(name: str, requests: Sequence[Request]) -> None:
    """Refuse to trade copying against prose where one of them is missing: all settings would be worth the same.

    Raises:
        TuningError: one is.
    """
    if name != "nsgaii":
        return
    found = {"copy": any(copies(category(one)) for one in requests), "are free prose": any(map(is_prose, requests))}
    for kind, there in found.items():
        if not there:
            raise TuningError(f"--sampler nsgaii: trades copying against prose, and no requests for tuning {kind}")


def points(space: Space) -> int:
    """Return the points of a space's grid.

    Raises:
        TuningError: more than can be kept.
    """
    count = 1
    for values in space.grid.values():
        count *= len(values)
    if count > MOST_POINTS:
        raise TuningError(
            f"the grid has {count:.3g} points (at most {MOST_POINTS}); narrow it with --fix NAME=VALUE "
            "and --range NAME=VALUE,VALUE"
        )
    return count


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna's remarks on experimental features and on parameters drawn one by one to itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
