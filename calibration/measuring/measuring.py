"""The measurement: every width warmed first, then cells in random order, round after round, so drift hits all alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from calibration.engine import Engine, Sampler
from calibration.measuring import probes
from calibration.measuring.plan import STRETCH, Cell, Plan
from calibration.measuring.samples import Samples

PREFILL_REPEATS = 5
PREFILL_ENOUGH_S = 5.0
"""The prefill is repeated until it was timed so often, or took so long in all."""
PREFILL_PART_S = 2.0
"""Seconds for which tokens are timed between one length and the next: prompts of 2,304 take minutes on a CPU."""
PREFILL_PART = 32
"""Tokens that are timed at least, if there are so many, however long they take."""

CHECKED_EVERY = 4
"""Rounds from one measurement of what the time model derives to the next; it is held against, and no input."""


@dataclass
class Measurement:
    """What was measured, complete or not."""

    samples: Samples = field(default_factory=Samples)
    rounds: int = 0
    """Complete rounds."""
    interrupted: bool = False

    @property
    def checks(self) -> dict[str, float]:
        """Median seconds of what the time model derives, by what that is; see `probes.derived`."""
        return {cell.kind: self.samples.median_s(cell) for cell in self.samples.cells if cell.kind in probes.DERIVED}


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
    first_s = _warm(engine, plan, done)
    _prefills(engine, plan.contexts, found.samples, done)
    order = random.Random(plan.seed)
    try:
        for number in range(plan.rounds):
            # A round counts once it is whole, so that every cell has as many samples.
            once = _round(engine, plan, order, done, checked=number % CHECKED_EVERY == 0)
            for cell, seconds in once:
                found.samples.add(cell, seconds)
            found.rounds += 1
    except KeyboardInterrupt:
        found.interrupted = True
        if not found.rounds:
            raise
    for width, seconds in first_s.items():
        later = Cell("sync", width, plan.contexts[0])
        # One that was no slower than the slowest of the later ones is not told from them.
        slower = seconds > max(found.samples.cells[later])
        more_s = seconds - found.samples.median_s(later) if slower else 0.0
        found.samples.add(later._replace(kind="first_use"), more_s)
    return found


def predicted(engine: Engine, plan: Plan) -> dict[str, float]:
    """Return what `Measurement.checks` holds, of an engine that nothing disturbs: a scripted one.

    It has prices up to the last context only, so with contexts as close to each other as a probe is long it is asked a
    little before the first.
    """
    context = min(plan.contexts[0], plan.contexts[-1] - STRETCH)
    engine.pretend(context)
    return {cell.kind: seconds for cell, seconds in probes.derived(engine, context, plan.host_work_s)}


def _warm(engine: Engine, plan: Plan, done: Callable[[str], None]) -> dict[int, float]:
    """Return the seconds of the first forward of every width, and run the pipeline once.

    Width 1 has been used before, as it has been in every reply: a prefill ends with it.
    """
    first_s = {}
    context = plan.contexts[0]
    engine.pretend(context)
    for width in plan.widths:
        first_s[width] = probes.sync_s(engine, width)
        done(f"the first use of width {width}")
    probes.pipelined_s(engine, context)
    return first_s


def _prefills(engine: Engine, lengths: Sequence[int], samples: Samples, done: Callable[[str], None]) -> None:
    """Time a prompt of the first length, and for every further one the way there from the one before it.

    Of a long way only the end is timed, behind a KV state that is filled synthetically. A token costs more the further
    it stands behind, in proportion to that, so the way takes the mean of what a token costs at its two ends. One of the
    first prompt may cost more, because so few share the reading of the weights; the way there has more of them.
    """
    spent_s = 0.0
    for repeat in range(PREFILL_REPEATS):
        prompt = probes.tokens(engine, lengths[0])
        began_s = engine.clock_s()
        engine.prefill(prompt, Sampler())
        engine.read()
        taken_s = prompt_s = engine.clock_s() - began_s
        token_s = prompt_s / lengths[0]
        samples.add(Cell("prefill", 0, lengths[0]), prompt_s)
        for before, length in pairwise(lengths):
            timed = min(length - before, max(PREFILL_PART, int(PREFILL_PART_S / token_s)))
            part_s = _fill_s(engine, length - timed, timed)
            last_token_s, token_s = token_s, part_s / timed
            near_s = min(last_token_s, token_s)
            prompt_s += part_s if timed == length - before else (length - before) * (near_s + token_s) / 2
            taken_s += part_s
            samples.add(Cell("prefill", 0, length), prompt_s)
            if not repeat:
                done(f"a prefill of {length}")
        spent_s += taken_s
        if spent_s > PREFILL_ENOUGH_S:
            return


def _fill_s(engine: Engine, context: int, count: int) -> float:
    engine.pretend(context)
    fed = probes.tokens(engine, count)
    began_s = engine.clock_s()
    engine.fill(fed)
    return engine.clock_s() - began_s


def _round(
    engine: Engine, plan: Plan, order: random.Random, done: Callable[[str], None], *, checked: bool
) -> list[probes.Sample]:
    found: list[probes.Sample] = []
    contexts = list(plan.contexts)
    order.shuffle(contexts)
    for context in contexts:
        engine.pretend(context)
        cells = list(plan.timed(context))
        order.shuffle(cells)
        for cell in cells:
            found += probes.samples(engine, cell)
            done(str(cell))
        if checked and context == plan.contexts[0]:
            found += probes.derived(engine, context, plan.host_work_s)
    return found
