"""How far every policy stays behind the oracle, by category of reply and by machine."""

from __future__ import annotations

from suite_study import (
    MACHINES,
    Part,
    Row,
    held_out_part,
    judge,
    overall,
    percent,
    share,
    short,
    slowest_prose,
    speedups,
    tuned,
    tuning_part,
    whole,
)

import policies
from policies import Policy
from policies.plain import Plain
from simulator.oracle import Oracle
from simulator.report import table
from tuning.score import mean

LEAST_GAIN = 0.05
"""What the oracle has to gain for shares of it to mean anything."""
NAMES = ("fixed", "graded", "gated", "breakeven", "expected_value")
COLUMNS = ("plain", *NAMES, "gated, tuned")


def main() -> None:
    """Print the study."""
    machine = MACHINES[0]
    print(table(by_category(machine)), table(by_machine(whole, "regret")), sep="\n\n")
    print()
    for part, title in ((tuning_part, "gain, tuning"), (held_out_part, "gain, held out")):
        print(table(gains(part, title)), end="\n\n")
    print(table(prose(tuning_part, "tuning")), table(prose(held_out_part, "held out")), sep="\n\n")


def column(name: str, machine: str) -> Policy:
    """Return the policy of a column on a machine."""
    if name == "plain":
        return Plain()
    return tuned()[machine] if name == "gated, tuned" else policies.load(name)


def by_category(machine: str) -> list[Row]:
    """Return by how much every policy is slower than the oracle in each category."""
    place = MACHINES.index(machine)
    best = speedups(Oracle(), whole)[place]
    rows: list[Row] = [(f"regret, {short(machine)}", "requests", "oracle", *COLUMNS)]
    for kind, places in judge(whole).categories.items():
        bound = mean(best, places)
        cells = [mean(speedups(column(name, machine), whole)[place], places) for name in COLUMNS]
        rows.append((kind, str(len(places)), f"{bound:.3f}", *(percent(1 - cell / bound) for cell in cells)))
    return rows


def by_machine(part: Part, title: str) -> list[Row]:
    """Return by how much every policy is slower than the oracle on each machine, over all categories."""
    rows: list[Row] = [(title, "oracle", *COLUMNS)]
    for machine in MACHINES:
        bound = overall(Oracle(), part, machine)
        cells = [overall(column(name, machine), part, machine) for name in COLUMNS]
        rows.append((short(machine), f"{bound:.3f}", *(percent(1 - cell / bound) for cell in cells)))
    return rows


def gains(part: Part, title: str) -> list[Row]:
    """Return which share of the oracle's gain over plain decoding every policy reaches; none where it gains nothing."""
    rows: list[Row] = [(title, "oracle gains", *COLUMNS[1:])]
    for machine in MACHINES:
        gained = overall(Oracle(), part, machine) - 1
        cells = [f"{share(column(name, machine), part, machine) * 100:.0f} %" for name in COLUMNS[1:]]
        rows.append((short(machine), percent(gained), *(cells if gained > LEAST_GAIN else ["-"] * len(cells))))
    return rows


def prose(part: Part, title: str) -> list[Row]:
    """Return the slowest request of free prose of a part."""
    rows: list[Row] = [(f"slowest prose, {title}", "oracle", *COLUMNS[1:])]
    for machine in MACHINES:
        chosen = [Oracle(), *(column(name, machine) for name in COLUMNS[1:])]
        rows.append((short(machine), *(f"{slowest_prose(one, part, machine):.3f}" for one in chosen)))
    return rows


if __name__ == "__main__":
    main()
