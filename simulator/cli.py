"""The `simulate` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import calibration
import policies
import traces
from calibration import DEFAULT_PROFILE, ProfileError
from policies import Policy, PolicyError
from simulator import console
from simulator.against import EngineLogs
from simulator.chosen import chosen_policies, files_first
from simulator.errors import SimulationError
from simulator.oracle import Oracle
from simulator.report import across, heading, other_model, report
from simulator.results import Result, side_by_side
from simulator.serving.options import chosen_service, serving_options
from simulator.serving.report import serving_report
from simulator.serving.results import ServedResult
from simulator.serving.serve_trace import serve_trace
from simulator.two_clocks import TwoClocks
from traces import TraceError

NO_BOUND = "oracle plans without first uses, so beside --cold it is no bound"

HELP = """Predict how recorded replies would have gone under a policy.

\b
Examples:
  simulate --policy gated --trace story.jsonl
  simulate --policy graded --policy gated:full_at=1.75 --policy oracle --trace copy --profile gb10-qwen3-8b-4bit

The last line is the answer: how many times as fast as plain decoding.
"""


def _policies() -> dict[str, str]:
    """Return the policies with the first line of what they say of themselves."""
    kinds = {**policies.policy_classes(), "oracle": Oracle}
    return {name: (kind.__doc__ or "").splitlines()[0] for name, kind in kinds.items()}


@click.command(cls=console.Command, help=HELP, glossary=[("Policies", _policies())])
@click.option(
    "--policy",
    "texts",
    multiple=True,
    metavar="NAME[:SETTING=VALUE,…]",
    help="What to propose and when; repeat to compare policies side by side.",
)
@click.option("--settings", "files", multiple=True, metavar="FILE", help="A policy with the settings that tune found.")
@click.option(
    "--trace",
    "wheres",
    multiple=True,
    required=True,
    metavar="NAME|FILE|DIR",
    help="What was said: a file, a directory of them, or a shipped trace; may repeat.",
)
@click.option(
    "--profile",
    "profile_name",
    metavar="NAME|FILE",
    help=f"What forwards cost: a shipped profile or a file; {DEFAULT_PROFILE} unless given.",
)
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A setting of every policy that has it.")
@click.option(
    "--against",
    "logs",
    multiple=True,
    metavar="FILE",
    help="A log of the reference engine: set its counters and rate beside ours; may repeat.",
)
@click.option("--sync", is_flag=True, help="Never pipeline the policy's run; plain decoding beside it still does.")
@click.option("--cold", is_flag=True, help="Charge every request for the first use of each width in a process.")
@click.option("--interpolate-widths", is_flag=True, help="Fill in widths between those that the profile has.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--events", is_flag=True, help="Add one code for every step of every request, or every tick.")
@serving_options
@click.version_option(package_name="breakeven")
def simulate(
    texts: Sequence[str],
    files: Sequence[str],
    wheres: Sequence[str],
    profile_name: str | None,
    sets: Sequence[str],
    logs: Sequence[str],
    sync: bool,
    cold: bool,
    interpolate_widths: bool,
    as_json: bool,
    events: bool,
    **serving: Any,
) -> None:
    """Parse, simulate, print."""
    with console.reports(TraceError, PolicyError, ProfileError, SimulationError):
        service = chosen_service(serving, pipelined=not sync)
        if service and (logs or cold):
            name = "--against" if logs else "--cold"
            raise click.UsageError(f"{name} is about one request at a time and does not go with --serve")
        chosen = chosen_policies(texts, sets, files, files_first=files_first(click.get_current_context()))
        profile = calibration.shipped(DEFAULT_PROFILE) if profile_name is None else calibration.load(profile_name)
        costs = profile.costs(interpolate_widths=interpolate_widths)
        names = [name for words in wheres for name in traces.expand(words)]
        answers: Sequence[Sequence[Result]] | Sequence[Sequence[ServedResult]]
        if service:
            server_costs = profile.server_costs(costs, service.server.kv_storage)
            notes = server_costs.notes(service.server.parallel)
            answers = served = [serve_trace(name, chosen, server_costs, service, events=events) for name in names]
            reports = [serving_report(results, profile) for results in served]
        else:
            if cold and not costs.first_use_s:
                raise ProfileError(f"profile {profile.name} does not say what a first use costs (cost.first_use_s)")
            clocks, notes = TwoClocks(costs, cold=cold), list(costs.notes)
            answers = replayed = _replayed(names, chosen, clocks, logs, sync=sync, events=events, spent=not as_json)
            reports = [report(results, profile) for results in replayed]
            reports += [across(replayed)] if len(replayed) > 1 else []
        notes += ["the policy's run is never pipelined (--sync)"] if sync else []
        notes += ["the first use of every width is charged (--cold)"] if cold else []
        notes += [NO_BOUND] if cold and any(isinstance(policy, Oracle) for policy in chosen) else []
    if as_json:
        places = range(len(chosen))
        documents = [
            results[place].document(profile.name, [*other_model(results[place].header["model"], profile), *notes])
            for place in places
            for results in answers
        ]
        console.print_json(documents[0] if len(documents) == 1 else {"runs": documents})
    else:
        console.print_text("\n\n".join([heading(profile, notes, named=profile_name is not None), *reports]))


def _replayed(
    names: Sequence[str], chosen: Sequence[Policy], clocks: TwoClocks, logs: Sequence[str], *, sync: bool, **keep: bool
) -> list[list[Result]]:
    """Replay every trace under every policy, one request at a time, beside the engine's logs where there are some."""
    engine_logs = EngineLogs(logs)
    answers = []
    for name in names:
        with traces.open_trace(name) as reader:
            if reader.source != name and Path(name).parent != Path():
                console.note(f"{name}: there is no such file; this is the shipped trace {reader.source}")
            results = [Result(policy, reader.source, reader.header) for policy in chosen]
            for runs in side_by_side(reader, chosen, clocks, sync=sync):
                logged = engine_logs.find(runs[0].request)
                for result, run in zip(results, runs, strict=True):
                    result.add(run, logged=logged, **keep)
        answers.append(results)
    engine_logs.check_all_found()
    return answers
