"""The `calibrate` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from calibration import ProfileError, checkpoints
from calibration.cost_table import LONGEST_CONTEXT
from calibration.costs import spans
from calibration.engine import EngineError
from calibration.measuring import report
from calibration.measuring.calibrated import Calibrated, calibrated
from calibration.measuring.output import Output
from calibration.measuring.plan import CONTEXTS, ROUNDS, WIDTHS, Plan
from calibration.printouts import foreign
from calibration.printouts.about import About
from calibration.profile import check_name
from calibration.resources import enough_memory
from simulator import console

MEASURING = ("widths", "contexts", "rounds", "work_s", "seed")
"""What measuring takes, by the names of the command's parameters."""
IMPORTING = ("chip", "measured")
"""What importing takes."""

HELP = """Time a model on this machine and write what its forwards cost as a profile.

\b
Examples:
  calibrate --model smollm2 --dtype bfloat16 -o profile.yaml
  calibrate --import printout.txt --from mlxcel --model Qwen3-1.7B --dtype 4bit --chip "Apple M4 Pro" -o m4.yaml

Every width is warmed first; then all cells are timed in random order, round after round. The raw samples go beside the
profile. Close other programs: what disturbs the machine ends up in the profile, and the output says when it did.
"""


def numbers(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Read integers: 1..10, or 16,256,1024, or both.

    Raises:
        click.BadParameter: it is no such list.
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            span = int(first), int(last if dots else first)
            if span[1] < span[0]:
                raise ValueError
            if span[1] - span[0] > LONGEST_CONTEXT:
                raise click.BadParameter(f"{text!r} holds more numbers than there are contexts ({LONGEST_CONTEXT})")
            found += range(span[0], span[1] + 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers; write 1..10 or 16,256,1024") from None
    return tuple(found)


def duration(context: click.Context, option: click.Parameter, text: str) -> float:
    """Read a time written as 20ms or 0.02s, in seconds.

    Raises:
        click.BadParameter: it is none, or has no unit.
    """
    for unit, scale in (("ms", 1e-3), ("us", 1e-6), ("s", 1.0)):
        if text.endswith(unit):
            with suppress(ValueError):
                return round(float(text.removesuffix(unit)) * scale, 9)
            break
    raise click.BadParameter(f"{text!r} is no time; write 20ms or 0.02s")


@click.command(cls=console.Command, help=HELP, context_settings={"max_content_width": 120})
@click.option("--model", metavar="NAME|DIR", help="smollm2, or an mlx-lm checkpoint; with --import, what was measured.")
@click.option("--dtype", help="As for record; with --import, what the profile says.")
@click.option(
    "--widths", callback=numbers, default=spans(WIDTHS), show_default=True, help="Widths of a forward, from 1."
)
@click.option(
    "--contexts",
    callback=numbers,
    default=",".join(map(str, CONTEXTS)),
    show_default=True,
    help="Positions in the KV state.",
)
@click.option("--rounds", default=ROUNDS, show_default=True, type=click.IntRange(min=1), help="Samples of every cell.")
@click.option("--host-work", "work_s", callback=duration, default="0s", help="Host time per emitted token, as 20ms.")
@click.option("--seed", default=0, show_default=True, help="Of the order within a round.")
@click.option("--name", help="The profile's name; the output file's unless given.")
@click.option("--import", "imported", metavar="FILE", help="Read what another program measured instead of measuring.")
@click.option("--from", "source", type=click.Choice(foreign.SOURCES), help="Which program wrote it.")
@click.option("--chip", default="unknown", show_default=True, help="With --import: what it was measured on.")
@click.option("--measured", default="unknown", show_default=True, help="With --import: the day, as 2026-10-02.")
@click.option(
    "-o", "--output", "where", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Profile."
)
@click.option("--force", is_flag=True, help="Overwrite a profile that is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.version_option(package_name="breakeven")
def calibrate(
    model: str | None,
    dtype: str | None,
    widths: tuple[int, ...],
    contexts: tuple[int, ...],
    rounds: int,
    work_s: float,
    seed: int,
    name: str | None,
    imported: str | None,
    source: str | None,
    chip: str,
    measured: str,
    where: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Parse, measure or import, write, print."""
    if (imported is None) != (source is None):
        raise click.UsageError(f"--import FILE and --from {'|'.join(foreign.SOURCES)} need each other")
    check_belonging(MEASURING if source else IMPORTING, "measuring" if source else "--import")
    if model is None:
        if source != "json":
            raise click.UsageError("Missing option '--model'")
        model = "unknown"  # the file says it
    if source is None and dtype not in (None, *checkpoints.DTYPES):
        raise click.BadParameter(f"{dtype!r} is not one of {', '.join(checkpoints.DTYPES)}", param_hint="--dtype")
    with console.reports(EngineError, ProfileError), enough_memory():
        output = Output(where, force, name or where.name.removesuffix(".yaml"))
        if imported is not None and source is not None:
            output.check(where)
            about = About(output.name, model, dtype or "unknown", chip, measured)
            found = Calibrated(foreign.import_profile(imported, source, about))
        else:
            check_name(output.name)
            output.check(where, output.samples, output.refused)
            plan = Plan(widths, contexts, rounds, work_s, seed)
            found = calibrated(
                checkpoints.open_engine(model, dtype), plan, output, " ".join(["calibrate", *sys.argv[1:]])
            )
        if found.samples:
            found.samples.write(output.samples)
        found.profile.write(where)
    if as_json:
        console.print_json(report.document(found.profile, found.warnings, found.checks))
    else:
        console.print_text(report.text(found.profile, found.checks))
    for line in found.warnings:
        console.note(line)
    if found.interrupted:
        raise click.ClickException(f"interrupted: kept {found.profile.cost.sync_runs} of {rounds} rounds")


def check_belonging(others: Sequence[str], what: str) -> None:
    """Refuse an option of the other way to come to a profile.

    Args:
        others: the parameters of that way.
        what: that way, as the user calls it.

    Raises:
        click.UsageError: naming it.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in others and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} is for {what} only")
