"""How breakeven fares on the shipped recordings and machines, and how little its two settings matter."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import calibration
import policies
import traces
from policies import Policy
from simulator import Oracle
from simulator.recorded import Recording
from simulator.report import table
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks

MACHINES = {
    name: calibration.load(name).costs(interpolate_widths=True)
    for name in calibration.names()
    if calibration.load(name).provenance is None
}
"""Those of published figures; what `calibrate` has measured says where it comes from."""
RECORDINGS = {
    name: [Recording(request) for request in traces.load(name).requests]
    for name in ("copy", "long_copy", "edit_code", "edit_json", "summary", "chat", "story", "email")
}


def speedup(recordings: Sequence[Recording], policy: Policy, clocks: TwoClocks) -> float:
    """Return how many times as fast as plain decoding the replies come, their prompts not counted."""
    runs = [simulate(recording, policy, clocks) for recording in recordings]
    return sum(run.plain_decode_s for run in runs) / sum(run.decode_s for run in runs)


def mean(policy: Policy, clocks: TwoClocks) -> float:
    """Return the geometric mean over the recordings."""
    speedups = [speedup(recordings, policy, clocks) for recordings in RECORDINGS.values()]
    return prod(speedups) ** (1 / len(speedups))


def main() -> None:
    """Print decode speedups by machine and recording, and means by setting."""
    chosen = [policies.load("gated"), policies.load("breakeven"), Oracle()]
    rows = [("machine", "recording", *(policy.name for policy in chosen))]
    for machine, costs in MACHINES.items():
        clocks = TwoClocks(costs)
        for place, (name, recordings) in enumerate(RECORDINGS.items()):
            cells = (f"{speedup(recordings, policy, clocks):.3f}" for policy in chosen)
            rows.append(("" if place else machine, name, *cells))
    print(table(rows))
    print()
    variants = ["gated", "breakeven", "breakeven:memory=4", "breakeven:memory=16", "breakeven:doubt=1"]
    rows = [("mean of all recordings", *(machine.removesuffix("-4bit") for machine in MACHINES))]
    for text in (*variants, "breakeven:doubt=4"):
        policy = policies.load(text)
        rows.append((text, *(f"{mean(policy, TwoClocks(costs)):.3f}" for costs in MACHINES.values())))
    print(table(rows))


if __name__ == "__main__":
    main()
