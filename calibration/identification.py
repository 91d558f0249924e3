"""Who took the time: the host's and the device's share of what was measured.

A synchronous forward takes launch + device + read, a pipelined step only what launching and reading cannot hide
behind the device. From the two follow, when the device is the slower, `launch + read = sync - pipelined` and the
device time of width 1 is the pipelined step; when the host is, `launch + read = pipelined`. The device time of any
width is what is left of its synchronous forward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import Literal

from calibration.cost_table import CostTable
from calibration.costs import pipelined
from calibration.errors import ProfileError

Bound = Literal["device", "host"]

NOTEWORTHY = 0.01
"""A derived plain step that misses the measured one by more than this is worth a note."""


@dataclass(frozen=True)
class HostTimes:
    """The host's times as far as they were measured by themselves; None where they were not."""

    launch_s: float | None = None
    read_s: float | None = None
    run_ahead_s: float | None = None


@dataclass(frozen=True)
class Shares:
    """What one table comes to."""

    launch_s: float
    """Seconds to build and launch a forward."""
    read_s: float
    """Seconds to read a result; the whole of launch and read when they were not measured apart."""
    device_s: tuple[tuple[float, ...], ...]
    """Seconds of device time, one row per width, one column per measured context."""
    notes: tuple[str, ...]
    """Where one launch-and-read time for all contexts misses a measured step."""


def identify(table: CostTable, bound: Bound, host: HostTimes) -> Shares:
    """Split a table of measurements into host and device.

    Launch and read are one number each for all contexts: as measured, else the median over the contexts. With a
    device-bound table the pipelined step and every forward wider than 1 are then met exactly at every measured
    context, and the synchronous width 1 up to the scatter of that median; with a host-bound one it is the pipelined
    step that is met up to it.

    Raises:
        ProfileError: measurements that contradict each other.
    """
    for place in range(len(table.contexts)):
        _check_plain(table, place)
    host_s = _host_s(table, bound, host)
    run_ahead_s = math.inf if host.run_ahead_s is None else host.run_ahead_s
    rows = [tuple(sync_s - host_s for sync_s in row) for row in table.sync_s]
    if bound == "device":
        # the pipelined step is what most rounds cost, so it is met exactly
        idle_s = max(0.0, host_s - run_ahead_s)
        rows[0] = tuple(pipelined_s - idle_s for pipelined_s in table.pipelined_s)
    for width, row in zip(table.widths, rows, strict=True):
        for context, device_s in zip(table.contexts, row, strict=True):
            if device_s <= 0:
                raise ProfileError(
                    f"cost.sync_s: width {width} at context {context} leaves the device no time beside launch and "
                    f"read ({host_s:g} s)"
                )
    notes = _misses(table, rows[0], host_s, run_ahead_s)
    if host.launch_s is not None and host.read_s is not None:
        return Shares(host.launch_s, host.read_s, tuple(rows), notes)
    return Shares(0.0, host_s, tuple(rows), notes)


def _check_plain(table: CostTable, place: int) -> None:
    pipelined_s, sync_s = table.pipelined_s[place], table.sync_s[0][place]
    where = f"cost.sync_s: width 1 at context {table.contexts[place]}"
    got = f"({sync_s:g} s against {pipelined_s:g} s)"
    if sync_s < pipelined_s:
        spread = "by twice their spread or more" if table.spread_s(place) else "and no spread explains it"
        raise ProfileError(f"{where} is below the pipelined step {spread} {got}")
    if sync_s > 2 * pipelined_s:
        raise ProfileError(f"{where} is above twice the pipelined step, more than any overlap saves {got}")


def _host_s(table: CostTable, bound: Bound, host: HostTimes) -> float:
    if (host.launch_s is None) != (host.read_s is None):
        have, lack = ("launch_s", "read_s") if host.read_s is None else ("read_s", "launch_s")
        raise ProfileError(f"{have}: needs {lack} beside it")
    if host.launch_s is not None and host.read_s is not None:
        host_s = host.launch_s + host.read_s
        shortest_s = min(table.pipelined_s)
        if bound == "device" and host_s > shortest_s:
            raise ProfileError(
                f"launch_s: launch and read are above the pipelined step, so the host is the slower; bound: host? "
                f"({host_s:g} s against {shortest_s:g} s)"
            )
        return host_s
    if bound == "host":
        if host.run_ahead_s is not None:
            raise ProfileError("run_ahead_s: needs launch_s and read_s beside it when bound is host")
        return median(table.pipelined_s)
    overlap_s = median(sync - plain for sync, plain in zip(table.sync_s[0], table.pipelined_s, strict=True))
    if host.run_ahead_s is not None and overlap_s > host.run_ahead_s:
        raise ProfileError(
            f"run_ahead_s: is shorter than the overlap measured, so launch_s and read_s are needed beside it "
            f"({host.run_ahead_s:g} s against {overlap_s:g} s)"
        )
    return overlap_s


def _misses(table: CostTable, device_s: tuple[float, ...], host_s: float, run_ahead_s: float) -> tuple[str, ...]:
    derived = {
        "pipelined": ([pipelined(own_s, host_s, run_ahead_s) for own_s in device_s], table.pipelined_s),
        "synchronous": ([own_s + host_s for own_s in device_s], table.sync_s[0]),
    }
    notes = []
    for kind, (computed, measured) in derived.items():
        misses = [abs(now / then - 1) for now, then in zip(computed, measured, strict=True)]
        worst = max(misses)
        if worst > NOTEWORTHY:
            notes.append(
                f"with one launch-and-read time of {host_s:g} s for all contexts, the {kind} plain step differs from "
                f"the measured one by up to {worst:.1%} (context {table.contexts[misses.index(worst)]})"
            )
    return tuple(notes)
