"""The `replay` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import calibration
import traces
from calibration import ProfileError, checkpoints
from calibration.engine import EngineError
from calibration.measuring.assembling import came_of, drawn_again
from calibration.measuring.samples import read
from calibration.profile_file import SHIPPED, folder
from calibration.resources import enough_memory
from policies import PolicyError
from simulator import console
from simulator.chosen import chosen_policies, files_first
from simulator.oracle import Oracle
from simulator.replay import matching
from simulator.replay.errors import ReplayError
from simulator.replay.measuring import INTERRUPTED, Checks, finished
from simulator.replay.report import answers, document, text
from simulator.replay.session import Mode, Session, Setup
from simulator.replay.store import Store
from simulator.results import side_by_side
from simulator.two_clocks import TwoClocks
from traces import Trace, TraceError

DRAWS = 100
"""Profiles that the interval of a prediction is made of."""

HELP = """Run policies for real and hold the prediction against them.

\b
Examples:
  replay --policy gated --trace chat --model smollm2 --dtype bfloat16
  replay --policy gated --policy fixed --trace mine.jsonl --model smollm2 --mode free --rounds 3 --save runs/today

Forced, the rounds are those of the recorded reply and only the times are the engine's; free, the engine's own tokens
decide, and its reply is compared with plain decoding. Plain decoding runs twice in every round: how far the two
differ (`null`) is what this machine cannot tell apart. Ctrl-C keeps what was measured; --save goes on from there.

Exit code 3: a reply or a counter differs without excuse, or the prediction is not --within the error given.
"""


def share(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Read a share written as 5% or 0.05.

    Raises:
        click.BadParameter: it is none, or not between 0 and 1.
    """
    if text is None:
        return None
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no share; write 5% or 0.05") from None
    if not 0 < found < 1:
        raise click.BadParameter(f"{text!r} must be above 0 % and below 100 %")
    return found


@click.command(cls=console.Command, help=HELP, context_settings={"max_content_width": 120})
@click.option("--policy", "texts", multiple=True, metavar="NAME[:SETTING=VALUE,…]", help="May repeat.")
@click.option("--settings", "files", multiple=True, metavar="FILE", help="A policy with the settings that tune found.")
@click.option("--trace", "where", required=True, metavar="NAME|FILE", help="What was said.")
@click.option("--model", required=True, metavar="NAME|DIR", help="Who says it: smollm2, or an mlx-lm checkpoint.")
@click.option("--dtype", type=click.Choice(checkpoints.DTYPES), help="As for record.")
@click.option("--profile", "profile_name", metavar="NAME|FILE", help="The shipped one of model and dtype unless given.")
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A setting of every policy that has it.")
@click.option("--mode", type=click.Choice(["forced", "free"]), default="forced", show_default=True)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1), help="Repeats of every run.")
@click.option("--tokens", type=click.IntRange(min=1), metavar="N", help="Only the first N tokens of every reply.")
@click.option("--request", "ids", multiple=True, metavar="ID", help="Only this request; may repeat.")
@click.option(
    "--within", callback=share, metavar="SHARE", help="Exit with 3 if all requests together are further off, as 5%."
)
@click.option("--save", type=click.Path(path_type=Path), metavar="DIR", help="Keep the raw rounds, or go on with them.")
@click.option("--seed", default=0, show_default=True, help="Of the order of turns.")
@click.option("--allow-mismatch", is_flag=True, help="Replay a trace or profile of another model or machine.")
@click.option("--interpolate-widths", is_flag=True, help="Fill in widths between those that the profile has.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.version_option(package_name="breakeven")
def replay(
    texts: Sequence[str],
    files: Sequence[str],
    where: str,
    model: str,
    dtype: str | None,
    profile_name: str | None,
    sets: Sequence[str],
    mode: Mode,
    rounds: int,
    tokens: int | None,
    ids: Sequence[str],
    within: float | None,
    save: Path | None,
    seed: int,
    allow_mismatch: bool,
    interpolate_widths: bool,
    as_json: bool,
) -> None:
    """Parse, measure what is missing, compare, print."""
    with console.reports(TraceError, PolicyError, ProfileError, EngineError, ReplayError), enough_memory():
        chosen = chosen_policies(texts, sets, files, files_first=files_first(click.get_current_context()))
        trace = traces.load(where)
        name = trace.header["model"]
        if profile_name:
            profile, samples = calibration.load(profile_name), folder(profile_name)
        else:
            # A saved replay is reported without its checkpoint, so a directory's dtype is the recording's.
            stored = checkpoints.DEFAULT_DTYPE if model in checkpoints.NAMES else trace.header.get("dtype", "")
            profile, samples = matching.profile_of(name, dtype or stored), SHIPPED
        costs = profile.costs(interpolate_widths=interpolate_widths)
        requests = tuple(matching.first_tokens(one, tokens) for one in picked(trace, ids))
        sampler = matching.sampler_of(trace.header)
        if model in checkpoints.NAMES:
            dtype = dtype or checkpoints.DEFAULT_DTYPE
        setup = Setup(where, model, dtype, requests, tuple(chosen), costs, mode, rounds, seed, sampler)
        session = Session(setup, Store(save))
        predict(setup)
        drawn, notes = resampled(profile, samples)
        checks = Checks([trace.header], setup, profile, allow_mismatch)
        stopped = finished(session, checks)
        notes += [*checks.notes(session.engine), *session.notes]
        clocks = [TwoClocks(one.costs(interpolate_widths=interpolate_widths)) for one in drawn]
        found = answers(session, TwoClocks(costs), dict(trace.header), clocks)
        excused = not matching.recorded_alike(trace.header, session.engine)
        defects = {str(answer.policy): answer.defects(excused) for answer in found}
        if as_json:
            documents = [
                document(session, answer, profile, [*costs.notes, *notes], defects[str(answer.policy)])
                for answer in found
            ]
            console.print_json(documents[0] if len(documents) == 1 else {"runs": documents})
        else:
            console.print_text(text(session, found, profile, [*costs.notes, *notes], named=profile_name is not None))
    for line in dict.fromkeys([*notes, *(line for lines in defects.values() for line in lines)]):
        console.note(line)
    if stopped:
        missing = f"{session.left} runs are missing" if session.left else "not every reply was compared"
        raise click.ClickException(f"{stopped}: {missing}{'; --save goes on from there' * (stopped == INTERRUPTED)}")
    far = [answer for answer in found if within is not None and abs(answer.error) > within]
    for answer in far:
        console.note(
            f"{answer.policy}: the prediction is off by {answer.error * 100:+.1f} %, more than --within allows"
        )
    if any(defects.values()) or far:
        click.get_current_context().exit(3)


def predict(setup: Setup) -> None:
    """Simulate everything once, so that a width or context without a price is refused before anything runs.

    Raises:
        ProfileError: there is one.
        ReplayError: a policy that only a simulation can follow.
    """
    for policy in setup.policies:
        if isinstance(policy, Oracle):
            raise ReplayError("oracle knows the reply, so no engine can follow it; simulate gives its bound")
    clocks = TwoClocks(setup.costs)
    for _ in side_by_side(setup.requests, setup.policies, clocks):
        pass
    if setup.mode == "free":
        # What the engine will say may be looked up in more places than the recording.
        for width in range(1, setup.widest + 1):
            setup.costs.device_row(width)


def resampled(profile: calibration.Profile, directory: Path) -> tuple[list[calibration.Profile], list[str]]:
    """Return the profile with its samples drawn again, and what to say of them.

    There is none without the file that keeps the samples, and none where the profile did not come of these.

    Raises:
        ProfileError: the file is none of samples, or lacks some.
    """
    name = profile.provenance.samples if profile.provenance else None
    if name is None or not (directory / name).is_file():
        return [], []
    samples = read(directory / name)
    if not came_of(profile, samples):
        where = directory / name
        return [], [
            f"{where}: holds other samples than profile {profile.name!r} came of; no interval of its prediction"
        ]
    return drawn_again(profile, samples, DRAWS), []


def picked(trace: Trace, ids: Sequence[str]) -> list[traces.Request]:
    """Return the requests of a trace that were asked for.

    Raises:
        ReplayError: there is no such request.
    """
    known = {request.id: request for request in trace.requests}
    for name in ids:
        if name not in known:
            raise ReplayError(f"{trace.source}: no request {name!r} (have: {', '.join(known)})")
    return [known[name] for name in dict.fromkeys(ids)] if ids else list(trace.requests)
