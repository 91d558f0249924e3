"""The `tune` command."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import calibration
import traces
from calibration import DEFAULT_PROFILE, ProfileError
from calibration.engine import EngineError
from calibration.host_clock import today
from calibration.progress import counted
from policies import PolicyError, assignments
from simulator import console
from simulator.errors import SimulationError
from simulator.replay.errors import ReplayError
from simulator.serving.options import chosen_service, tuning_options
from traces import TraceError
from tuning.confirm_options import CONFIRMING, confirming_options
from tuning.errors import TuningError
from tuning.score import Rules

if TYPE_CHECKING:
    from tuning.answer import Answer
    from tuning.confirming import Plan

DEFAULT_TRIALS = 200
"""Trials of a study when neither `--trials` nor `--timeout` says."""
SAMPLERS = ("tpe", "random", "grid", "cmaes", "nsgaii")

HELP = """Search a policy's settings for the fastest, and check what was found on requests that the search never saw.

\b
Examples:
  tune --policy gated --trace copy --trace story --trace chat --trace email --trials 50
  tune --policy graded --trace runs/ --profile gb10-qwen3-8b-4bit --fix match=latest --range multiplier=1,2,3 \\
      --sampler grid -o graded.yaml

A study goes on where it ended: the same command joins it, on this machine or, with a database as --storage, on many.
Ctrl-C keeps what is finished.

Exit code 3: no settings that were tried keep the rules (the least bad are shown), or --confirm refutes them.
"""


def comparable(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse what click finds in every range, since it is neither below nor above."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not in the range x>0.")
    return value


@click.command(cls=console.Command, help=HELP)
@click.option("--policy", "name", required=True, metavar="NAME", help="Whose settings.")
@click.option(
    "--trace", "wheres", multiple=True, required=True, metavar="NAME|FILE|DIR", help="What was said; may repeat."
)
@click.option(
    "--profile",
    "profile_names",
    multiple=True,
    metavar="NAME|FILE",
    help=f"What forwards cost; of several the worst counts. {DEFAULT_PROFILE} unless given.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Trials of the study.  [default: {DEFAULT_TRIALS}; of a grid, all its points]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    callback=comparable,
    metavar="S",
    help="Seconds to search at most.",
)
@click.option(
    "--sampler", type=click.Choice(SAMPLERS), default="tpe", show_default=True, help="How settings are proposed."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Of all that is drawn.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one a core]")
@click.option("--fix", "fixes", multiple=True, metavar="NAME=VALUE", help="A setting that is not searched; may repeat.")
@click.option(
    "--range", "ranges", multiple=True, metavar="NAME=LOW..HIGH|NAME=V,V", help="What a setting may be; may repeat."
)
@click.option("--floor", default=0.99, show_default=True, help="Speedup that every prose request has to reach.")
@click.option("--keep", default=0.95, show_default=True, help="Share of the shipped gain that copying has to keep.")
@click.option(
    "--weight", "weights", multiple=True, metavar="CATEGORY=N", help="What a category counts; 1 unless given."
)
@click.option("--study", metavar="NAME", help="Which study; named after the question unless given.")
@click.option(
    "--storage", default="tune.journal", show_default=True, metavar="FILE|URL", help="Where studies are kept."
)
@click.option("--interpolate-widths", is_flag=True, help="Fill in widths between those that the profiles have.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write what was found as settings."
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there already.")
@click.option("--emit", type=click.Choice(["mlxcel"]), help="Print the changed constants as source and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@confirming_options
@tuning_options
@click.version_option(package_name="breakeven")
def tune(
    name: str,
    wheres: Sequence[str],
    profile_names: Sequence[str],
    trials: int | None,
    timeout: float | None,
    sampler: str,
    seed: int,
    workers: int | None,
    fixes: Sequence[str],
    ranges: Sequence[str],
    floor: float,
    keep: float,
    weights: Sequence[str],
    study: str | None,
    storage: str,
    interpolate_widths: bool,
    output: Path | None,
    force: bool,
    emit: str | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Parse, search, judge, print."""
    # Only here: Optuna takes half a second to import, and --help need not wait for it.
    from tuning.answer import Answer
    from tuning.confirming import plan
    from tuning.inquiry import inquiry
    from tuning.output import Form, check, printed, write
    from tuning.rust import check as check_emitted
    from tuning.samplers import check as check_sampler
    from tuning.search import chosen, judged
    from tuning.study import Place
    from tuning.worker import Work
    from tuning.workers import work_together

    if emit and as_json:
        raise click.UsageError("--emit and --json: each prints nothing else; give one of them")
    confirming = {name: others.pop(name) for name in CONFIRMING}
    serving = {**others, "seed": seed if others["serve"] else None}
    errors = (TraceError, PolicyError, ProfileError, SimulationError, TuningError)
    with console.reports(*errors, EngineError, ReplayError):
        if output is not None:
            check(output, force=force)
        question = inquiry(
            name,
            [traces.load(one) for where in wheres for one in traces.expand(where)],
            [calibration.load(one) for one in profile_names] or [calibration.shipped(DEFAULT_PROFILE)],
            Rules(floor, keep, numbers(weights)),
            fixes=fixes,
            ranges=ranges,
            service=chosen_service(serving, pipelined=True),
            interpolate_widths=interpolate_widths,
        )
        if emit:
            check_emitted(question.policy)
        check_sampler(sampler, question.split.tuning)
        confirm = plan(question, confirming)
        digests = question.digests(sampler, seed)
        place = Place(storage, study or question.name(sampler, seed))
        if trials is None and timeout is None and sampler != "grid":
            trials = DEFAULT_TRIALS
        seconds = float("inf") if timeout is None else timeout
        task = Work(question.problem, question.split.tuning, place, digests, sampler, seed, trials, seconds)
        interrupted = False
        try:
            with counted(0 if task.goal == math.inf else int(task.goal), "searching") as done:
                work_together(task, workers or os.cpu_count() or 1, done)
        except KeyboardInterrupt:
            interrupted = True
        found = chosen(task)
        answer = Answer(question, task, found, judged(question.problem, question.split.held_out, found.candidate))
        form: Form = "json" if as_json else "mlxcel" if emit else "text"
        try:
            # What took long to find is not lost, whatever becomes of the engine or the disk.
            if confirm is not None:
                answer = with_confirmation(answer, confirm, interrupted)
            if output is not None and not interrupted and not answer.failure:
                write(output, answer, today())
        finally:
            console.print_text(printed(answer, form, today(), named=bool(profile_names)))
    if interrupted:
        raise click.ClickException(f"interrupted: {len(found.trials)} trials are kept; the same command goes on")
    if answer.failure:
        raise click.ClickException(answer.failure)
    if not found.feasible or (answer.promising and not answer.recommended):
        click.get_current_context().exit(3)


def with_confirmation(answer: Answer, plan: Plan, interrupted: bool) -> Answer:
    """Return an answer with what the engine says of it, or with why it said nothing."""
    if interrupted:
        return replace(answer, failure="the search was interrupted") if answer.promising else answer
    if not answer.promising:
        console.note("nothing is recommended, so there is nothing to confirm")
        return answer
    try:
        return replace(answer, confirmation=plan.run(answer))
    except (EngineError, ReplayError, ProfileError) as error:
        return replace(answer, failure=str(error))


def numbers(texts: Sequence[str]) -> dict[str, float]:
    """Read the weights of categories.

    Raises:
        PolicyError: a text of another form.
        TuningError: a weight that is no number.
    """
    found = {}
    for category, text in assignments(texts, where="--weight").items():
        try:
            found[category] = float(text)
        except ValueError:
            raise TuningError(f"--weight {category}: must be a number (got {text!r})") from None
    return found
