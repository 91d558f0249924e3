"""A machine, measured and made into a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from calibration import ProfileError, progress, this_machine
from calibration.engine import Engine
from calibration.host_clock import today
from calibration.measuring import assembling, measuring, report
from calibration.measuring.output import Output
from calibration.measuring.plan import Plan
from calibration.measuring.samples import Samples
from calibration.measuring.warnings import warnings
from calibration.profile import Profile
from calibration.provenance import Provenance
from calibration.scripted_engine import ScriptedEngine


@dataclass(frozen=True)
class Calibrated:
    """What came of it."""

    profile: Profile
    samples: Samples | None = None
    warnings: Sequence[str] = ()
    checks: report.Checks = field(default_factory=dict)
    interrupted: bool = False


def calibrated(engine: Engine, plan: Plan, output: Output, source: str) -> Calibrated:
    """Measure an engine and make the profile; samples that come to none are kept.

    Args:
        engine: freshly opened.
        plan: what to measure.
        output: what the profile is called, and where its samples go.
        source: the command, for the profile to say.

    Raises:
        EngineError: the model cannot be measured.
        ProfileError: the samples contradict each other, or a word of the profile would not print.
    """
    load = this_machine.load_average()
    engine_says = engine.provenance()
    # Made first, so that what no profile says is refused before any time is spent.
    about = assembling.Circumstances(
        name=output.name,
        machine=this_machine.machine(),
        engine=engine_says,
        measured=today(),
        source=source,
        host_work_s=plan.host_work_s,
        provenance=_provenance(engine_says, load, output.samples.name),
    )
    with progress.counted(plan.steps, "warming") as done:
        found = measuring.measure(engine, plan, done)
    said = warnings(found.samples, load)
    try:
        profile = assembling.profile(found.samples, replace(about, notes=tuple(said)))
    except ProfileError as error:
        found.samples.write(output.refused)
        raise ProfileError(
            f"{error}; use more --rounds or a quieter machine (the samples are kept in {output.refused})"
        ) from error
    predicted = measuring.predicted(ScriptedEngine({}, profile.costs()), plan)
    checks = {key: (predicted[key], seconds) for key, seconds in found.checks.items()}
    return Calibrated(profile, found.samples, profile.notes, checks, found.interrupted)


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
