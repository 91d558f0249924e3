"""A study: repeated by its seed, resumed where it ended, refused for another question, blind to what is held out."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import optuna
import pytest
from optuna.trial import TrialState

import calibration
from policies.gated import Gated
from tests.tuning_requests import PROFILE, problem, requests, task
from traces import Request
from tuning.dimension import Value
from tuning.errors import TuningError
from tuning.problem import Problem
from tuning.samplers import NAMES, sampler
from tuning.score import Rules, Score
from tuning.search import Found, Verdict, changes, judged, search
from tuning.selection import Candidate, Scoring, best, simplified
from tuning.sensitivity import importances
from tuning.space import space
from tuning.storage import opened
from tuning.study import SCORE, Place, score_document, score_of
from tuning.worker import Work, joined, work

NARROWED = ("narrow=1..8", "full_at=0..4", "misses=1..8")
FIXED = tuple(
    f"{name}={value}"
    for name, value in problem().shipped.settings.items()
    if name not in ("narrow", "full_at", "misses")
)


def trials(found: Found) -> list[Any]:
    return [(one.number, one.state, one.params, one.values, one.constraints) for one in found.trials]


@pytest.mark.parametrize("name", NAMES)
def test_with_one_worker_a_seed_repeats_the_study_in_one_go_or_in_two(name: str, tmp_path: Path) -> None:
    asked = problem(ranges=NARROWED, fixes=FIXED)
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder in folders:
        folder.mkdir()

    whole = search(task(folders[0], asked, sampler=name, trials=14), 1)
    work(task(folders[1], asked, sampler=name, trials=5))
    resumed = search(task(folders[1], asked, sampler=name, trials=14), 1)
    other = search(task(folders[2], asked, sampler=name, trials=14, seed=1), 1)

    assert len(whole.trials) == 14
    assert trials(whole) == trials(resumed)
    assert trials(whole) != trials(other)
    assert whole.candidate == resumed.candidate


def test_the_first_trial_is_the_shipped_constants_and_what_is_found_is_no_slower(tmp_path: Path) -> None:
    asked = problem()
    found = search(task(tmp_path, asked), 1)
    space = asked.space

    assert space.draw(optuna.trial.FixedTrial(found.trials[0].params)) == space.defaults
    assert found.candidate.score.speedup >= score_of(found.trials[0]).speedup
    assert found.feasible


def test_constraints_are_optunas_own(tmp_path: Path) -> None:
    found = search(task(tmp_path), 1)

    for trial in found.trials:
        assert trial.constraints == pytest.approx(dict(score_of(trial).violations))


def test_changes_that_gain_nothing_are_put_back(tmp_path: Path) -> None:
    found = search(task(tmp_path, trials=20), 1)

    changed = [one for one in found.constants if one.found != one.shipped]
    assert len(changed) < len(found.constants) - 3
    for constant in changed:
        assert constant.obstacle or (constant.cost is not None and constant.cost > 0)


def settings_that_score(speedups: dict[tuple[int, ...], float]) -> tuple[list[Candidate], Scoring]:
    """Candidates of three constants, shipped as 0, and what scores them; what has no speedup is slow."""

    def score(settings: Mapping[str, Value]) -> Score:
        values = tuple(int(str(settings[name])) for name in "abc")
        return Score(speedups.get(values, 1.0), 1.0, 1.0, {})

    named = [dict(zip("abc", values, strict=True)) for values in speedups]
    return [Candidate(settings, score(settings)) for settings in named], score


@pytest.mark.parametrize(
    ("speedups", "taken"),
    [
        ({(1, 2, 3): 1.5, (1, 0, 3): 1.5}, (1, 0, 3)),
        # No single one can go, but two at once can.
        ({(1, 2, 3): 1.5, (0, 0, 3): 1.4999}, (0, 0, 3)),
        # Another trial, as good, changes fewer than the fastest can be brought down to.
        ({(1, 2, 3): 1.5, (0, 7, 0): 1.4995}, (0, 7, 0)),
        ({(1, 2, 3): 1.5, (0, 7, 0): 1.49}, (1, 2, 3)),
        # The other trial changes fewer, but the fastest can be brought down further.
        ({(1, 2, 3): 1.5, (0, 7, 6): 1.5, (1, 2, 0): 1.5, (1, 0, 0): 1.5}, (1, 0, 0)),
    ],
    ids=["one goes", "two go", "another", "not as good", "the fastest"],
)
def test_among_equals_the_fewest_changes_are_taken(
    speedups: dict[tuple[int, ...], float], taken: tuple[int, ...]
) -> None:
    found, score = settings_that_score(speedups)
    tried = [one for one in found if 7 in one.settings.values()]

    assert tuple(simplified(best(found), tried, dict.fromkeys("abc", 0), score).settings.values()) == taken


def test_a_rule_that_the_shipped_constants_keep_is_not_to_be_broken_for_another() -> None:
    def verdict(**amounts: float) -> Verdict:
        scores = {"shipped": {"prose": 0.09, "copying": -0.02}, "found": amounts}
        comparison = SimpleNamespace(score=lambda column: Score(1.0, 1.0, 1.0, scores[column]))
        return Verdict(cast(Any, comparison), cast(Any, SimpleNamespace(gains=True)))

    assert verdict(prose=0.05, copying=-0.01).recommended
    assert verdict(prose=0.09 + 1e-15, copying=-0.01).recommended
    assert not verdict(prose=0.0, copying=0.01).recommended
    assert not verdict(prose=0.1, copying=-0.5).recommended


def test_nothing_outside_a_range_is_found(tmp_path: Path) -> None:
    asked = problem(ranges=["full_at=3..4", "narrow=3..5", "misses=1..8"], fixes=FIXED)

    found = search(task(tmp_path, asked), 1)

    assert 3 <= float(str(found.candidate.settings["full_at"])) <= 4
    assert 3 <= int(str(found.candidate.settings["narrow"])) <= 5


def test_the_search_reads_nothing_of_what_is_held_out(tmp_path: Path) -> None:
    hollow = object.__new__(Request)  # whoever reads a field of it fails
    asked = problem(ranges=NARROWED, fixes=FIXED)

    found = search(task(tmp_path, asked), 1)

    with pytest.raises(AttributeError):
        judged(asked, (hollow,), found.candidate)


def test_another_question_under_the_same_name_is_refused(tmp_path: Path) -> None:
    asked = problem()
    work(task(tmp_path, asked, trials=1))
    others = {
        "space": problem(fixes=["narrow=2"]),
        "profiles": problem(profiles=["gb10-qwen3-8b-4bit"]),
        "rules": dataclasses.replace(asked, rules=dataclasses.replace(asked.rules, floor=0.5)),
    }

    for part, other in others.items():
        with pytest.raises(TuningError) as refused:
            work(task(tmp_path, other, trials=1))
        assert f"study in {tmp_path / 'tune.journal'}: the digest of its {part} is " in str(refused.value)
        assert "another question needs another --study" in str(refused.value)
    traces = asked.digests(requests(2)) | {"space": asked.digests(())["space"]}
    with pytest.raises(TuningError, match="the digest of its traces is"):
        work(dataclasses.replace(task(tmp_path, asked), digests=traces))


def test_settings_without_a_cost_are_trials_without_a_score(tmp_path: Path) -> None:
    asked = problem(
        ranges=["max_draft=3,20", "full_at=0..1"], fixes=[line for line in FIXED if "max_draft" not in line]
    )
    found = search(task(tmp_path, asked, trials=9, sampler="random"), 1)

    refused = [one for one in found.trials if one.state == TrialState.PRUNED]
    assert {one.params["max_draft"] for one in found.trials} == {3, 20}
    assert {one.params["max_draft"] for one in refused} == {20}
    assert all("width 21 is not in profile" in one.user_attrs["refused"] for one in refused)
    # To TPE they are worse than what breaks a rule.
    assert {one.constraints["refused"] for one in refused} == {1e6}


def test_a_constant_is_important_that_tells_the_best_trials_from_the_rest() -> None:
    study = optuna.create_study(direction="maximize")
    points: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(0, 1) for name in ("best", "worst")
    }
    draw = random.Random(1)
    for _ in range(200):
        at = {name: draw.random() for name in points}
        speedup = 1 + (at["best"] > 0.9) - 0.5 * (at["worst"] < 0.1) + 0.01 * draw.random()
        attributes = {SCORE: score_document(Score(speedup, speedup, 1.0, {}))}
        study.add_trial(
            optuna.trial.create_trial(params=at, distributions=points, value=speedup, user_attrs=attributes)
        )

    found = importances(study)

    assert found is not None
    assert found["best"] > 0.8


def test_other_shipped_constants_are_another_question() -> None:
    one = problem()
    other = replace(one, space=replace(one.space, shipped=Gated(misses=9)))

    first, second = (asked.digests(requests()) for asked in (one, other))

    assert {name for name in first if first[name] != second[name]} == {"space"}


def test_a_study_that_minimises_is_refused(tmp_path: Path) -> None:
    asked = task(tmp_path)
    with opened(asked.place.storage) as storage:
        optuna.create_study(study_name=asked.place.name, storage=storage)

        with pytest.raises(TuningError, match=r"must maximise 1 value \(got minimize\)$"):
            joined(asked, storage)


def test_a_profile_without_wide_forwards_can_be_tuned_for(tmp_path: Path) -> None:
    wide = calibration.shipped(PROFILE)
    cost = replace(wide.cost, widths=wide.cost.widths[:5], sync_s=wide.cost.sync_s[:5], first_use_s=None)
    if cost.sync_spread_s is not None:
        cost = replace(cost, sync_spread_s=cost.sync_spread_s[:5])
    asked = Problem(space("fixed", [], [], 5), (replace(wide, cost=cost),), Rules(floor=0.5))

    found = search(task(tmp_path, asked), 1)

    assert found.comparison.score("shipped").copying > 1
    assert changes(asked, Candidate(asked.space.defaults, found.candidate.score)) == {}
    assert int(str(found.candidate.settings["max_draft"])) <= 4


def test_a_grid_ends_with_its_points_and_may_not_be_too_large(tmp_path: Path) -> None:
    asked = problem(ranges=["narrow=1,2", "full_at=1,2,3"], fixes=[*FIXED, "misses=3"])

    found = search(task(tmp_path, asked, sampler="grid", trials=100), 1)

    assert sorted((one.params["narrow"], one.params["full_at"]) for one in found.trials) == [
        (narrow, full_at) for narrow in (1, 2) for full_at in (1.0, 2.0, 3.0)
    ]
    with pytest.raises(TuningError, match=r"^the grid has .* points \(at most 100000\); narrow it with --fix"):
        sampler("grid", problem().space, 0)
    with pytest.raises(TuningError, match=r"^no sampler named 'x' \(have: tpe, random, grid, cmaes, nsgaii\)"):
        sampler("x", problem().space, 0)


def test_a_point_whose_trial_failed_is_tried_again_and_none_twice(tmp_path: Path) -> None:
    asked = problem(ranges=["narrow=1,2", "full_at=1,2,3"], fixes=[*FIXED, "misses=3"])
    given = task(tmp_path, asked, sampler="grid", trials=100)
    with opened(given.place.storage) as storage:
        study = joined(given, storage)
        for trial in (study.ask(), study.ask()):
            asked.space.draw(trial)
            study.tell(trial, state=TrialState.FAIL)

    found = search(given, 1)

    points = [(one.params["narrow"], one.params["full_at"]) for one in found.trials]
    assert len(points) == len(set(points)) == 6


def test_a_floor_that_nothing_meets_leaves_the_least_bad(tmp_path: Path) -> None:
    asked = problem()
    high = dataclasses.replace(asked, rules=dataclasses.replace(asked.rules, floor=5.0))

    found = search(task(tmp_path, high), 1)

    assert not found.feasible
    assert found.candidate.score.violation <= min(score_of(one).violation for one in found.trials)


def test_several_workers_share_a_study(tmp_path: Path) -> None:
    said: list[str] = []

    found = search(task(tmp_path, trials=12), 2, said.append)

    assert 12 <= len(found.trials) <= 13
    assert len(said) == len(found.trials)
    assert [one.number for one in found.trials] == list(range(len(found.trials)))


def test_what_a_worker_cannot_do_is_said_by_the_one_who_started_it(tmp_path: Path) -> None:
    other = dataclasses.replace(task(tmp_path), place=Place(str(tmp_path / "no" / "tune.journal"), "study"))

    with pytest.raises(TuningError, match=r"no/tune.journal: cannot be written \(no directory"):
        search(other, 2)


def test_work_is_what_a_worker_process_is_sent() -> None:
    assert {field.name for field in dataclasses.fields(Work)} == {
        *("problem", "requests", "place", "digests", "sampler", "seed", "trials", "seconds", "lease_s")
    }
