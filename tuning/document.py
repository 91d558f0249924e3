"""The JSON document of `tune`; its fields are a contract with other tools (docs/reference/commands.md)."""

from __future__ import annotations

from typing import Any

from optuna.trial import FrozenTrial

from tuning.answer import Answer
from tuning.comparison import Comparison
from tuning.evidence import evidence
from tuning.sensitivity import Constant
from tuning.study import REFUSED, SCORE, proposers


def document(answer: Answer, day: str) -> dict[str, Any]:
    """Return everything that came out, as plain values.

    Args:
        answer: what came out.
        day: the date of the evidence.
    """
    inquiry, task = answer.inquiry, answer.task
    problem, effect = inquiry.problem, answer.verdict.effect
    names = [profile.name for profile in problem.profiles]
    return {
        "policy": inquiry.policy,
        "profiles": names,
        "traces": [trace.source for trace in inquiry.traces],
        "split": {
            "by": inquiry.split.rule,
            "tuning": [request.id for request in inquiry.split.tuning],
            "held_out": [request.id for request in inquiry.split.held_out],
        },
        "rules": {
            "floor": problem.rules.floor,
            "keep": problem.rules.keep,
            "weights": dict(problem.rules.weights),
        },
        "serve": problem.service.settings if problem.service else None,
        "space": problem.space.document(),
        "study": {"name": task.place.name, "proposed_by": proposers(answer.found.trials)},
        "found": dict(answer.policy.settings),
        "changes": dict(answer.changes),
        "feasible": answer.found.feasible,
        "recommended": answer.recommended,
        "reason": answer.reason,
        "tuning": _comparison(answer.found.comparison, names),
        "held_out": _comparison(answer.verdict.comparison, names)
        | {"effect": {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "requests": effect.requests}},
        "confirmation": answer.confirmation.document() if answer.confirmation else None,
        "constants": [_constant(one) for one in answer.found.constants],
        "evidence": evidence(answer, day),
        "trials": [_trial(trial) for trial in answer.found.trials],
    }


def _comparison(part: Comparison, profiles: list[str]) -> dict[str, Any]:
    return {
        profile: {
            "speedup": {"plain": 1.0, **part.overall(machine)},
            "categories": {name: part.category(name, machine) for name in part.judge.categories},
            "slowest_prose": part.worst_prose(machine),
        }
        for machine, profile in enumerate(profiles)
    }


def _constant(one: Constant) -> dict[str, Any]:
    return {
        "name": one.name,
        "shipped": one.shipped,
        "found": one.found,
        "cost": one.cost,
        "obstacle": one.obstacle,
        "importance": one.importance,
        "curve": [{"value": value, "speedup": speedup} for value, speedup in one.curve],
    }


def _trial(trial: FrozenTrial) -> dict[str, Any]:
    found: dict[str, Any] = {"number": trial.number, "parameters": dict(trial.params)}
    if REFUSED in trial.user_attrs:
        return found | {"refused": trial.user_attrs[REFUSED]}
    return found | dict(trial.user_attrs[SCORE])
