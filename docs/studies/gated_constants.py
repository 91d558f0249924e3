"""Which constants of `gated` each machine wants, and what one set for all of them costs.

`--search` searches what is missing in gated_constants.json, half a minute each; without it the tables are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from suite_study import (
    GB10,
    MACHINES,
    TUNED,
    Row,
    held_out_part,
    overall,
    percent,
    short,
    slowest_prose,
    tuned,
    tuning_part,
)

import policies
from policies import Policy
from simulator.oracle import Oracle
from simulator.report import table
from tuning.comparison import oracle

TRIALS = 200
FOUR, ALL = "the four GB10", "all of them"
"""The names of constants that were searched for several machines at once, the worst of them counting."""
ASKED = {**{machine: (machine,) for machine in MACHINES}, FOUR: GB10, ALL: MACHINES}
"""Machines by the name of what was searched for them."""


def main() -> None:
    """Search if asked to, and print the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help="search what is missing")
    if parser.parse_args().search:
        found = json.loads(TUNED.read_text("utf-8")) if TUNED.exists() else {}
        for name, machines in ASKED.items():
            if name not in found:
                found[name] = search(machines)
                in_order = {name: found[name] for name in ASKED if name in found}
                TUNED.write_text(json.dumps(in_order, indent=2) + "\n", "utf-8")
    print(table(constants()), table(crossed()), table(held_out()), sep="\n\n")


def search(names: Sequence[str]) -> dict[str, str]:
    """Return the constants that `tune` finds for some machines, those that are not shipped."""
    with tempfile.TemporaryDirectory() as folder:
        asked = ["--policy", "gated", "--trace", "suite", "--trials", str(TRIALS), "--workers", "1", "--json"]
        profiles = [word for name in names for word in ("--profile", name)]
        command = [str(Path(sys.executable).with_name("tune")), *asked, *profiles]
        print("$", " ".join(["tune", *command[1:]]), file=sys.stderr)
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.returncode)
    document = json.loads(done.stdout)
    print("  ", document["reason"], file=sys.stderr)
    return {name: "none" if value is None else str(value) for name, value in document["changes"].items()}


def constants() -> list[Row]:
    """Return what was found for every machine, where it is not what is shipped."""
    shipped = policies.load("gated").settings
    names = [name for name in shipped if any(one.settings[name] != shipped[name] for one in tuned().values())]
    rows: list[Row] = [("constant", "shipped", *map(short, tuned()))]
    for name in names:
        own = [one.settings[name] for one in tuned().values()]
        rows.append((name, said(shipped[name]), *(said(value) if value != shipped[name] else "" for value in own)))
    return rows


def said(value: object) -> str:
    """Return a value as a command line writes it."""
    return "none" if value is None else str(value)


def crossed() -> list[Row]:
    """Return what the constants of every machine lose on every other, against that one's own, on the tuning part."""
    rows: list[Row] = [("lost on, with the constants of", "shipped", *map(short, tuned()))]
    for machine in MACHINES:
        own = overall(tuned()[machine], tuning_part, machine)
        chosen = [policies.load("gated"), *tuned().values()]
        rows.append((short(machine), *(percent(overall(one, tuning_part, machine) / own - 1, "+") for one in chosen)))
    return rows


def held_out() -> list[Row]:
    """Return how the shipped, the own and the common constants do on what was held out, and what the oracle does."""
    kinds = ("shipped", "own", FOUR, ALL)
    rows: list[Row] = [("held out", *kinds, "oracle", "oracle, own lookup", "slowest prose:", *kinds)]
    for machine in MACHINES:
        sets: list[Policy] = [policies.load("gated"), tuned()[machine], tuned()[FOUR], tuned()[ALL]]
        bounds = [Oracle(), oracle(tuned()[machine])]
        figures = [f"{overall(one, held_out_part, machine):.3f}" for one in (*sets, *bounds)]
        prose = [f"{slowest_prose(one, held_out_part, machine):.3f}" for one in sets]
        rows.append((short(machine), *figures, "", *prose))
    return rows


if __name__ == "__main__":
    main()
