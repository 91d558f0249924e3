"""What is wrong with a measurement, with a number and what to do about it."""

from __future__ import annotations

import os
from statistics import median

from calibration.measuring.samples import Samples

NOISY = 0.10
"""An interquartile range beyond this share of its median makes a cell noisy."""
DRIFTED = 0.03
"""A change from the first third to the last beyond this share is a drift."""
BUSY = 0.5
"""Processes a core that want to run besides this one."""


def warnings(samples: Samples, load_average: float | None) -> list[str]:
    """Return a line for each thing that a careful person would measure again for."""
    found = []
    cores = os.cpu_count() or 1
    if load_average is not None and load_average > BUSY * cores:
        found.append(
            f"the machine was busy when this began (load average {load_average:g} on {cores} cores); close other "
            "programs and calibrate again"
        )
    timed = [*samples.of("sync"), *samples.of("pipelined")]
    drift = median(samples.drift(cell) for cell in timed)
    if abs(drift) > DRIFTED:
        word = "slower" if drift > 0 else "faster"
        found.append(
            f"forwards became {abs(drift) * 100:.1f} % {word} from the first third of the rounds to the last; let the "
            "machine settle (temperature, other programs) and calibrate again"
        )
    shares = {cell: samples.spread_s(cell) / samples.median_s(cell) for cell in timed if samples.median_s(cell)}
    noisy = [cell for cell, share in shares.items() if share > NOISY]
    if noisy:
        worst = max(noisy, key=lambda cell: shares[cell])
        found.append(
            f"{len(noisy)} of {len(timed)} cells spread by more than {NOISY:.0%} of their median (worst: {worst}, "
            f"{shares[worst]:.0%}); use more --rounds or a quieter machine"
        )
    return found
