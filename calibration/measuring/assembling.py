"""Samples become a profile: medians and spreads, and whose time it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

import numpy as np

from calibration import checks
from calibration.cost_table import CostTable
from calibration.errors import ProfileError
from calibration.identification import Bound
from calibration.measuring.plan import Cell
from calibration.measuring.samples import DIGITS, Samples
from calibration.prefill import PrefillTable
from calibration.profile import Profile
from calibration.provenance import Machine, Provenance

LIMITED = 0.9
"""A host time of more than this share of what can hide it may not be hidden whole."""


@dataclass(frozen=True)
class Circumstances:
    """What a profile says besides its figures.

    Raises:
        ProfileError: a word that does not print.
    """

    name: str
    machine: Machine
    engine: Mapping[str, object]
    """What the engine says of itself."""
    measured: str
    """The day."""
    source: str
    """The command."""
    notes: tuple[str, ...] = ()
    host_work_s: float = 0.0
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        for where in ("model", "dtype"):
            checks.legible(str(self.engine[where]), where)
        checks.legible(self.source, "source")


@dataclass(frozen=True)
class Host:
    """The host's times as measured by themselves."""

    bound: Bound
    launch_s: float
    read_s: float
    run_ahead_s: float | None


def table(samples: Samples) -> CostTable:
    """Return the table of medians."""
    sync = samples.of("sync")
    widths = tuple(sorted({cell.width for cell in sync}))
    contexts = tuple(sorted({cell.context for cell in sync}))
    plain = [Cell("pipelined", 1, context) for context in contexts]
    first = {cell.width: samples.median_s(cell) for cell in samples.of("first_use")}
    return CostTable(
        contexts=contexts,
        used_for=(1, contexts[-1]),
        widths=widths,
        pipelined_s=tuple(map(samples.median_s, plain)),
        sync_s=_grid(samples.median_s, widths, contexts),
        pipelined_spread_s=tuple(map(samples.spread_s, plain)),
        sync_spread_s=_grid(samples.spread_s, widths, contexts),
        pipelined_runs=len(samples.cells[plain[0]]),
        sync_runs=len(samples.cells[sync[0]]),
        first_use_s=tuple(first[width] for width in widths) if first else None,
    )


def host(samples: Samples) -> Host:
    """Tell the host's share from the device's.

    The overlap lost by a synchronous step, round by round against the pipelined one beside it, is all that the host
    does between two forwards, wherever that hides behind the device. Where it may not (the host is the slower, or
    runs so far ahead only), the overlap is what the run-ahead lets it hide, and the building and the reading measured
    by themselves count as far as they are longer.
    """
    contexts = [cell.context for cell in samples.of("submit")]

    def over_contexts(kind: str) -> list[float]:
        return [samples.median_s(Cell(kind, 1, context)) for context in contexts]

    build_s, read_s = median(over_contexts("build")), samples.median_s(Cell("read", 1, contexts[0]))
    device_s = [sync_s - build_s - read_s for sync_s in over_contexts("sync")]
    ahead_s = [max(0.0, wait_s - read_s) for wait_s in over_contexts("wait")]
    overlap_s = median(_overlap_s(samples, cell.context) for cell in samples.of("pipelined"))
    if all(ahead < LIMITED * own for ahead, own in zip(ahead_s, device_s, strict=True)):
        return _limited(build_s, read_s, max(0.0, overlap_s), median(ahead_s), min(device_s))
    # A submit that does not wait for the device works for all of its time.
    build_s += median(over_contexts("submit"))
    direct_s = build_s + read_s
    if overlap_s > 0 and max(direct_s, overlap_s) <= LIMITED * min(device_s):
        build_s, read_s = _shared(overlap_s, build_s)
    return Host("host" if direct_s > min(device_s) else "device", build_s, read_s, None)


def _limited(build_s: float, read_s: float, overlap_s: float, run_ahead_s: float, device_s: float) -> Host:
    """Return the host's times where a submit blocks while more than the run-ahead is outstanding.

    The overlap is the shorter of the two, launch and read or run-ahead, so whichever of them is measured below it
    is raised to it: scheduling the forward, for one, is the host's work but no part of the building.
    """
    direct_s = build_s + read_s
    bound: Bound = "host" if direct_s > device_s else "device"
    if direct_s > max(overlap_s, LIMITED * run_ahead_s):
        return Host(bound, build_s, read_s, overlap_s)
    return Host(bound, *_shared(overlap_s, build_s), max(run_ahead_s, overlap_s))


def _shared(overlap_s: float, build_s: float) -> tuple[float, float]:
    """Return the launch and the read that make up an overlap."""
    launch_s = min(build_s, overlap_s)
    return launch_s, overlap_s - launch_s


def _overlap_s(samples: Samples, context: int) -> float:
    pairs = zip(samples.cells[Cell("sync", 1, context)], samples.cells[Cell("pipelined", 1, context)], strict=True)
    return median(sync_s - pipelined_s for sync_s, pipelined_s in pairs)


def profile(samples: Samples, about: Circumstances) -> Profile:
    """Return the profile that the samples come to.

    Raises:
        ProfileError: they contradict each other by more than their spread.
    """
    found, settled = table(samples).settled()
    times = host(samples)
    prefills = samples.of("prefill")
    engine = about.engine
    return Profile(
        name=about.name,
        machine=about.machine,
        engine=f"mlx {engine.get('mlx')}, mlx-lm {engine.get('mlx_lm')}" if "mlx" in engine else "scripted",
        model=str(engine["model"]),
        dtype=str(engine["dtype"]),
        measured=about.measured,
        source=about.source,
        bound=times.bound,
        cost=found,
        prefill=PrefillTable(
            tokens=tuple(cell.context for cell in prefills),
            seconds=tuple(map(samples.median_s, prefills)),
            source="measured with the rest, long prompts in part",
        ),
        notes=about.notes + settled,
        launch_s=times.launch_s,
        read_s=times.read_s,
        run_ahead_s=times.run_ahead_s,
        host_work_s=about.host_work_s,
        provenance=about.provenance,
    )


def _grid(
    figure: Callable[[Cell], float], widths: Sequence[int], contexts: Sequence[int]
) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(figure(Cell("sync", width, context)) for context in contexts) for width in widths)


def came_of(known: Profile, samples: Samples) -> bool:
    """Return whether a profile's costs are what its samples come to; they may have been measured again since."""
    try:
        found, _ = table(samples).settled()
    except (KeyError, IndexError, ValueError):
        return False
    cost = known.cost
    return (found.widths, found.contexts) == (cost.widths, cost.contexts) and np.allclose(
        [found.pipelined_s, *found.sync_s], [cost.pipelined_s, *cost.sync_s], rtol=0, atol=10**-DIGITS
    )


def drawn_again(known: Profile, samples: Samples, count: int, seed: int = 0) -> list[Profile]:
    """Return a profile as it might have come out of other rounds, so often: its samples are drawn again.

    Args:
        known: the profile that the samples came to.
        samples: its raw samples.
        count: how many draws; one that contradicts itself gives no profile.
        seed: of the draws.

    Raises:
        ProfileError: they lack what a profile is made of.
    """
    random = np.random.default_rng(seed)
    about = Circumstances(
        known.name,
        known.machine,
        {"model": known.model, "dtype": known.dtype},
        known.measured,
        known.source,
        host_work_s=known.host_work_s,
    )
    found = []
    for _ in range(count):
        try:
            with suppress(ProfileError):
                found.append(profile(samples.drawn_again(random), about))
        except (KeyError, IndexError, ValueError) as error:
            raise ProfileError(f"profile {known.name!r}: its samples lack what it is made of ({error!r})") from None
    return found
