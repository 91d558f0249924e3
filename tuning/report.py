"""The readable report of `tune`: the question, the table, the constants, and on the last line the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optuna.trial import TrialState

from simulator.console import one_line
from simulator.report import Row, heading, published_alike, table
from tuning.answer import Answer
from tuning.comparison import Comparison
from tuning.confirmation import COLUMNS, Confirmation
from tuning.dimension import shown
from tuning.effect import requests
from tuning.inquiry import Inquiry
from tuning.kinds import is_prose
from tuning.sensitivity import Constant, order
from tuning.space import set_line


def report(answer: Answer, *, named: bool) -> str:
    """Return the report.

    Args:
        answer: what came out.
        named: whether the user named the profile; the default is said to be one.
    """
    inquiry = answer.inquiry
    blocks = [
        "\n".join(
            heading(profile, _notes(inquiry, place), named) for place, profile in enumerate(inquiry.problem.profiles)
        ),
        "\n".join(_question(answer)),
        *(_machine(answer, place) for place in range(len(inquiry.problem.profiles))),
        _constants(answer.found.constants),
        *([_confirmation(answer.confirmation)] if answer.confirmation else []),
        "\n".join(_answer(answer)),
    ]
    return "\n\n".join(blocks)


def _notes(inquiry: Inquiry, place: int) -> list[str]:
    problem = inquiry.problem
    profile = problem.profiles[place]
    costs = profile.costs(interpolate_widths=problem.interpolate_widths)
    if problem.service is None:
        return list(costs.notes)
    server = problem.service.server
    return list(profile.server_costs(costs, server.kv_storage).notes(server.parallel))


def _question(answer: Answer) -> list[str]:
    inquiry, task = answer.inquiry, answer.task
    problem, parts = inquiry.problem, inquiry.split
    models = list(dict.fromkeys(str(trace.header["model"]) for trace in inquiry.traces))
    fixed = "".join(f", {name} fixed at {shown(value)}" for name, value in problem.space.fixed.items())
    count = len(problem.space.dimensions)
    refused = sum(trial.state == TrialState.PRUNED for trial in answer.found.trials)
    rules = problem.rules
    weights = "".join(f", {name} weighs {weight:g}" for name, weight in rules.weights.items())
    lines = [
        one_line(f"traces   {', '.join(trace.source for trace in inquiry.traces)}, of {', '.join(models)}"),
        f"split    {requests(len(parts.tuning))} for tuning, {len(parts.held_out)} held out, by {parts.rule}",
        f"policy   {inquiry.policy}: {count} setting{'s' * (count > 1)} searched{fixed}",
        *(f"         {note}" for note in problem.space.notes),
        *([f"server   {problem.service}"] if problem.service else []),
        f"rules    no prose request below {rules.floor:g}, copying categories keep {rules.keep * 100:.3g} % "
        f"of what the shipped constants gain{weights}",
        f"study    {task.place}: {answer.found.study}{f', {refused} of them refused' if refused else ''}",
    ]
    strangers = [profile for profile in problem.profiles if not all(published_alike(one, profile) for one in models)]
    if strangers:
        named = ", ".join(dict.fromkeys(profile.model for profile in strangers))
        lines.insert(1, f"         another model than the profile's {named}: only the times are that machine's")
    return lines


def _machine(answer: Answer, machine: int) -> str:
    """Show every column on one machine: overall, by category of what is held out, and the slowest prose."""
    tuning, held_out = answer.found.comparison, answer.verdict.comparison
    columns = list(held_out.speedups)
    name = answer.inquiry.problem.profiles[machine].name
    rows: list[Row] = [(name, "requests", "plain", *columns)]
    rows.append(_row("tuning", str(_count(tuning)), tuning.overall(machine), columns))
    rows.append(_row("held out", str(_count(held_out)), held_out.overall(machine), columns))
    for kind, places in held_out.judge.categories.items():
        rows.append(_row(f"  {kind}", str(len(places)), held_out.category(kind, machine), columns))
    for title, part in (("slowest prose, tuning", tuning), ("slowest prose, held out", held_out)):
        slowest = part.worst_prose(machine)
        if slowest is not None:
            rows.append(_row(title, str(len(part.judge.prose)), slowest, columns))
    return table(rows)


def _row(title: str, requests: str, figures: Mapping[str, float], columns: Sequence[str]) -> Row:
    return (title, requests, "1.000", *(f"{figures[column]:.3f}" for column in columns))


def _count(part: Comparison) -> int:
    return sum(len(places) for places in part.judge.categories.values())


def _constants(constants: Sequence[Constant]) -> str:
    rows: list[Row] = [("constant", "shipped", "found", "back to shipped", "as fast from", "to", "importance")]
    for one in order(constants):
        low, high = one.flat
        changed = one.found != one.shipped
        back = "" if not changed else one.obstacle or f"{-(one.cost or 0.0) * 100:+.1f} %"
        share = "-" if one.importance is None else f"{one.importance * 100:.0f} %"
        rows.append((one.name, shown(one.shipped), shown(one.found), back, shown(low), shown(high), share))
    return table(rows)


def _confirmation(found: Confirmation) -> str:
    """Show decode speedups as predicted, as measured, and in the worst round of each column."""
    rounds = len(found.rounds["found"])
    first = "" if found.tokens is None else f", first {found.tokens} tokens"
    count = str(len(found.requests))
    rows: list[Row] = [("decode speedup", "requests", "plain", *COLUMNS)]
    rows.append(_row("predicted", count, {name: found.overall(found.predicted[name]) for name in COLUMNS}, COLUMNS))
    rows.append(_row("measured", count, {name: found.overall(found.measured[name]) for name in COLUMNS}, COLUMNS))
    rows.append(_row("worst round", count, {name: found.worst(name) for name in COLUMNS}, COLUMNS))
    slowest = {name: found.worst_prose(found.measured[name]) for name in COLUMNS}
    known = {name: figure for name, figure in slowest.items() if figure is not None}
    if known:
        prose = sum(map(is_prose, found.requests))
        rows.append(_row("slowest prose", str(prose), known, COLUMNS))
    title = f"engine   {found.model}: held-out requests{first}, {rounds} round{'s' * (rounds > 1)}"
    return f"{one_line(title)}\n\n{table(rows)}"


def _answer(answer: Answer) -> list[str]:
    effect = answer.verdict.effect
    found = set_line(answer.changes)
    lines = [
        f"found      {f'--policy {answer.inquiry.policy} {found}' if found else 'the shipped constants'}",
        f"held out   {effect} as fast as the shipped constants, {effect.said}",
    ]
    words = "use what was found" if answer.recommended else "keep the shipped constants"
    if answer.failure or not answer.found.feasible:
        words = "no answer"
    return [*lines, f"{answer.inquiry.policy}: {words}; {answer.reason}"]
