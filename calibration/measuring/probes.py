"""Single measurements on an engine; every time is the engine's own."""

from __future__ import annotations

from collections.abc import Iterator

from calibration.engine import Engine
from calibration.measuring.plan import STRETCH, Cell

FIRST = 1
"""The id that a single forward is fed."""
DISTINCT = 1000
"""How many ids are fed over and over; any vocabulary has so many, or says that it has fewer."""

STEPS = 2
"""Of a pipelined run, for one sample: every speedup is a quotient of it, and a single step is too noisy."""
LONGER = 1.5
"""How much longer than a synchronous step the device is given to finish one."""

Sample = tuple[Cell, float]


def tokens(engine: Engine, count: int) -> list[int]:
    """Return made-up ids to feed.

    To most models all are alike; a mixture of experts reads more weights for several that differ, as a reply's do.
    """
    known = min(engine.vocabulary, DISTINCT)
    return [(FIRST + 37 * place) % known for place in range(count)]


def samples(engine: Engine, cell: Cell) -> Iterator[Sample]:
    """Measure one cell on an engine whose KV state has the cell's context, and leave it so.

    Args:
        engine: what to measure.
        cell: what of it.
    """
    if cell.kind == "sync":
        yield cell, sync_s(engine, cell.width)
    elif cell.kind == "pipelined":
        yield cell, pipelined_s(engine, cell.context)
    else:
        yield from _submit(engine, cell)


def sync_s(engine: Engine, width: int) -> float:
    """Return the seconds of one synchronous forward, from its building until its result is read and taken back."""
    fed = tokens(engine, width)
    began_s = engine.clock_s()
    engine.forward(fed)
    engine.trim(width)
    return engine.clock_s() - began_s


def pipelined_s(engine: Engine, context: int, work_s: float = 0.0) -> float:
    """Return the mean seconds of the first steps from that context on in a pipelined run, the host busy after each."""
    engine.trim(1)
    engine.submit(FIRST)
    _step(engine, work_s)  # the pipeline runs full from here on
    began_s = engine.clock_s()
    for _ in range(STEPS):
        _step(engine, work_s)
    taken_s = engine.clock_s() - began_s
    engine.trim(engine.context - context)
    return taken_s / STEPS


def _step(engine: Engine, work_s: float) -> None:
    engine.submit()
    engine.read()
    engine.work(work_s)


def _submit(engine: Engine, cell: Cell) -> Iterator[Sample]:
    """Submit one forward to an idle device: building it, the rest of the call, and what is left to wait then.

    Then another, to read what the device has long had.
    """
    began_s = engine.clock_s()
    build_s = engine.submit(FIRST)
    submitted_s = engine.clock_s()
    engine.read()
    waited_s = engine.clock_s() - submitted_s
    engine.trim(1)
    yield cell._replace(kind="build"), build_s
    yield cell._replace(kind="submit"), submitted_s - began_s - build_s
    yield cell._replace(kind="wait"), waited_s
    yield cell._replace(kind="read"), _read_s(engine, LONGER * (submitted_s + waited_s - began_s))


def _read_s(engine: Engine, done_s: float) -> float:
    """Return the seconds of reading a result that the device had been given so long to come to."""
    engine.submit(FIRST)
    engine.work(done_s)
    began_s = engine.clock_s()
    engine.read()
    taken_s = engine.clock_s() - began_s
    engine.trim(1)
    return taken_s


DERIVED = (
    f"a stretch of {STRETCH} steps, drained",
    f"a stretch of {STRETCH} steps, its last forward wasted",
    "two synchronous steps and a restart",
    "the pipelined step with host work",
)
"""What the time model derives instead of taking it as an input, to be held against it."""


def derived(engine: Engine, context: int, host_work_s: float) -> list[Sample]:
    """Measure what the time model derives.

    Args:
        engine: its KV state has that context; on a scripted one this is the prediction.
        context: where to measure.
        host_work_s: seconds that the host is busy for every emitted token; the last is left out without any.
    """
    drained, wasted, restart, working = (Cell(kind, 1, context) for kind in DERIVED)
    found = [
        (drained, _stretch_s(engine, drained=True)),
        (wasted, _stretch_s(engine, drained=False)),
        (restart, _restart_s(engine)),
    ]
    return [*found, (working, pipelined_s(engine, context, host_work_s))] if host_work_s else found


def _stretch_s(engine: Engine, *, drained: bool) -> float:
    began_s = engine.clock_s()
    engine.submit(FIRST)
    for _ in range(STRETCH - 1):
        engine.submit()
        engine.read()
    if drained:
        engine.read()
    taken_s = engine.clock_s() - began_s
    engine.trim(STRETCH)
    return taken_s


def _restart_s(engine: Engine) -> float:
    context = engine.context
    began_s = engine.clock_s()
    engine.forward([FIRST])
    engine.forward([FIRST])
    engine.submit(FIRST)
    engine.submit()
    engine.read()
    taken_s = engine.clock_s() - began_s
    engine.trim(engine.context - context)
    return taken_s
