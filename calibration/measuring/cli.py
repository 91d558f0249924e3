"""The `calibrate` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.core import ParameterSource

from calibration import ProfileError, checkpoints, progress, this_machine
from calibration.costs import spans
from calibration.engine import Engine, EngineError
from calibration.host_clock import today
from calibration.measuring import assembling, foreign, measuring, report
from calibration.measuring.about import About
from calibration.measuring.plan import CONTEXTS, ROUNDS, WIDTHS, Plan
from calibration.measuring.samples import Samples
from calibration.measuring.warnings import warnings
from calibration.profile import Profile, check_name
from calibration.provenance import Provenance
from calibration.resources import enough_memory
from calibration.scripted_engine import ScriptedEngine
from simulator import console
from traces.files import exists

MEASURING = ("widths", "contexts", "rounds", "work_s", "seed")
"""What measuring takes, by the names of the command's parameters."""

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
            found += range(int(first), int(last) + 1) if dots else [int(first)]
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


@dataclass(frozen=True)
class Output:
    """Where the profile goes, and its samples beside it."""

    path: Path
    force: bool
    name: str
    """What the profile is called."""

    @property
    def samples(self) -> Path:
        """The file of raw samples."""
        return self.path.with_name(f"{self.path.name.removesuffix('.yaml')}.samples.json")

    @property
    def refused(self) -> Path:
        """The file of raw samples that come to no profile."""
        return self.samples.with_suffix(".refused.json")

    def check(self, *written: Path) -> None:
        """Refuse what could not be written later, before any time is spent.

        Args:
            written: the files that will be.

        Raises:
            ProfileError: one is there already, or the folder is not or takes none.
        """
        for path in written:
            try:
                there = exists(path)
            except OSError as error:
                raise ProfileError(f"{path}: cannot be written ({error.strerror})") from None
            if path.is_dir():
                raise ProfileError(f"{path}: cannot be written (it is a directory)")
            if there and not path.is_file():
                # Moving a file over `/dev/null` would replace the device.
                raise ProfileError(f"{path}: is no regular file")
            if there and not self.force:
                raise ProfileError(f"{path}: is there already; --force overwrites it")
        if not self.path.parent.is_dir():
            raise ProfileError(f"{self.path}: cannot be written (no directory {str(self.path.parent)!r})")
        if not os.access(self.path.parent, os.W_OK):
            raise ProfileError(f"{self.path}: cannot be written ({str(self.path.parent)!r} takes no files)")


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
    if source is not None:
        check_nothing_measured()
    if model is None:
        if source != "json":
            raise click.UsageError("Missing option '--model'")
        model = "unknown"  # the file says it
    if source is None and dtype not in (None, *checkpoints.DTYPES):
        raise click.BadParameter(f"{dtype!r} is not one of {', '.join(checkpoints.DTYPES)}", param_hint="--dtype")
    output = Output(where, force, name or where.name.removesuffix(".yaml"))
    with console.reports(EngineError, ProfileError), enough_memory():
        if imported and source:
            output.check(where)
            about = About(output.name, model, dtype or "unknown", chip, measured)
            found = Calibrated(foreign.import_profile(imported, source, about))
        else:
            check_name(output.name)
            output.check(where, output.samples)
            plan = Plan(widths, contexts, rounds, work_s, seed)
            found = measure(checkpoints.open_engine(model, dtype), plan, output)
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


def check_nothing_measured() -> None:
    """Refuse an option that says how to measure where nothing is measured.

    Raises:
        click.UsageError: naming it.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in MEASURING and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} is for measuring, which --import is not")


@dataclass(frozen=True)
class Calibrated:
    """What came of it."""

    profile: Profile
    samples: Samples | None = None
    warnings: Sequence[str] = ()
    checks: report.Checks = field(default_factory=dict)
    interrupted: bool = False


def measure(engine: Engine, plan: Plan, output: Output) -> Calibrated:
    """Measure an engine and make the profile; samples that come to none are kept.

    Raises:
        EngineError: the model cannot be measured.
        ProfileError: the samples contradict each other.
    """
    load = this_machine.load_average()
    with progress.counted(plan.steps, "warming") as done:
        found = measuring.measure(engine, plan, done)
    said = warnings(found.samples, load)
    engine_says = engine.provenance()
    about = assembling.Circumstances(
        name=output.name,
        machine=this_machine.machine(),
        engine=engine_says,
        measured=today(),
        source=" ".join(["calibrate", *sys.argv[1:]]),
        notes=tuple(said),
        host_work_s=plan.host_work_s,
        provenance=_provenance(engine_says, load, output.samples.name),
    )
    try:
        profile = assembling.profile(found.samples, about)
    except ProfileError as error:
        found.samples.write(output.refused)
        raise ProfileError(f"{error}; the samples are kept in {output.refused}") from error
    predicted = measuring.predicted(ScriptedEngine({}, profile.costs()), plan)
    checks = {key: (predicted[key], seconds) for key, seconds in found.checks.items()}
    return Calibrated(profile, found.samples, said, checks, found.interrupted)


def _provenance(engine: dict[str, object], load: float | None, samples: str) -> Provenance:
    known = ("device", "weights_sha256", "tokenizer_sha256", "activations")
    return Provenance(
        **{name: str(engine[name]) for name in known if name in engine},
        blas=this_machine.blas(),
        blas_threads=this_machine.blas_threads(),
        load_average=None if load is None else f"{load:g}",
        power=this_machine.power(),
        samples=samples,
    )
