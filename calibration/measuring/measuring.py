"""The measurement: every width warmed first, then cells in random order, round after round, so drift hits all alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from calibration.engine import Engine, Sampler
from calibration.measuring import probes
from calibration.measuring.plan import Cell, Plan
from calibration.measuring.samples import Samples

PREFILL_REPEATS = 5
PREFILL_ENOUGH_S = 5.0
"""A prefill is repeated until it was timed so often, or took so long in all."""

LONGER = 1.5
"""How much longer than a synchronous step the device is given to finish one."""


@dataclass
class Measurement:
    """What was measured, complete or not."""

    samples: Samples = field(default_factory=Samples)
    checks: dict[str, float] = field(default_factory=dict)
    """Seconds of what the time model derives; see `probes.time_checks`."""
    rounds: int = 0
    """Complete rounds."""
    interrupted: bool = False


def measure(engine: Engine, plan: Plan, done: Callable[[str], None]) -> Measurement:
    """Measure an engine; Ctrl-C ends the rounds and keeps what there is.

    Args:
        engine: freshly opened, so that first uses are first.
        plan: what to measure.
        done: called with what is being measured after each step.

    Raises:
        EngineError: the model cannot roll back, or its context is shorter than the plan's.
    """
    engine.check_rollback(plan.positions)
    found = Measurement()
    _warm(engine, plan, found.samples)
    for length in plan.contexts:
        _prefills(engine, length, found.samples)
    order = random.Random(plan.seed)
    try:
        for _ in range(plan.rounds):
            # A round counts once it is whole, so that every cell has as many samples.
            once = _round(engine, plan, order, done)
            for cell, seconds in once:
                found.samples.add(cell, seconds)
            found.rounds += 1
    except KeyboardInterrupt:
        found.interrupted = True
        if not found.rounds:
            raise
    found.checks = _checks(engine, plan)
    return found


def checked(engine: Engine, plan: Plan) -> dict[str, float]:
    """Return the same derived times on an engine that was not measured: on a scripted one, the predictions."""
    return _checks(engine, plan)


def _warm(engine: Engine, plan: Plan, samples: Samples) -> None:
    """Time the first use of every width, and run the pipeline once."""
    context = plan.contexts[0]
    engine.pretend(context)
    for width in plan.widths:
        first_s = probes.sync_s(engine, width)
        samples.add(Cell("first_use", width, context), max(0.0, first_s - probes.sync_s(engine, width)))
    probes.pipelined_s(engine, context)


def _prefills(engine: Engine, length: int, samples: Samples) -> None:
    spent_s = 0.0
    for _ in range(PREFILL_REPEATS):
        began_s = engine.clock_s()
        engine.prefill([probes.TOKEN] * length, Sampler())
        engine.read()
        taken_s = engine.clock_s() - began_s
        samples.add(Cell("prefill", 0, length), taken_s)
        spent_s += taken_s
        if spent_s > PREFILL_ENOUGH_S:
            return


def _round(engine: Engine, plan: Plan, order: random.Random, done: Callable[[str], None]) -> list[probes.Sample]:
    found: list[probes.Sample] = []
    contexts = list(plan.contexts)
    order.shuffle(contexts)
    for context in contexts:
        engine.pretend(context)
        longest_s = LONGER * probes.sync_s(engine, 1)
        cells = list(plan.timed(context))
        order.shuffle(cells)
        for cell in cells:
            found += probes.samples(engine, cell, longest_s)
            done(str(cell))
    return found


def _checks(engine: Engine, plan: Plan, repeats: int = 5) -> dict[str, float]:
    """Return the medians of a few repeats at the first context."""
    engine.pretend(plan.contexts[0])
    rows = [probes.time_checks(engine, plan.contexts[0], plan.host_work_s) for _ in range(repeats)]
    return {name: sorted(row[name] for row in rows)[repeats // 2] for name in rows[0]}
