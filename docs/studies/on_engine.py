"""Do tuned constants and `expected_value` hold on the real engine? `--measure` measures what is missing.

Ten held-out requests of the suite, one of each category, the first 128 tokens, every round forced, on three regimes of
one machine. Everything goes into docs/studies/on_engine/ and is resumed from there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import calibration
import policies
import traces
from simulator.oracle import Oracle
from simulator.recorded import Recording
from simulator.replay.matching import first_tokens
from simulator.report import table
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks
from tuning.kinds import category, is_prose

ROOT = Path(__file__).resolve().parents[2]
"""Commands run here, so that what they write names no directory of one machine."""
HERE = Path("docs/studies/on_engine")
TUNED = Path("docs/studies/gated_constants.json")
TOKENS = 128
FLOOR = 0.98
"""What a request must not lie below with its whole interval."""
SHIPPED = ("fixed", "graded", "gated")
OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0"


@dataclass(frozen=True)
class Regime:
    """One profile of this machine, and what is run on it."""

    profile: str
    dtype: str
    policies: tuple[str, ...]
    """Besides the tuned `gated` and `expected_value`."""
    preload: str | None = None
    rounds: int = 3

    @property
    def tuned(self) -> str:
        """`gated` with the constants that were found for it, as a command line says it."""
        found = json.loads(TUNED.read_text("utf-8"))[self.profile]
        return "gated:" + ",".join(f"{name}={value}" for name, value in found.items()) if found else "gated"

    @property
    def all_policies(self) -> tuple[str, ...]:
        """All that are run, each once."""
        return tuple(dict.fromkeys((*self.policies, self.tuned, "expected_value")))

    @property
    def document(self) -> Path:
        """What replay says."""
        return HERE / f"{self.profile}.json.gz"


REGIMES = (
    Regime("epyc-smollm2-135m-float32-openblas", "float32", SHIPPED, OPENBLAS),
    Regime("epyc-smollm2-135m-bfloat16", "bfloat16", ("gated",)),
    Regime("epyc-smollm2-135m-q4", "q4", (), rounds=2),
)


def main() -> None:
    """Measure what was asked for, then print what there is."""
    os.chdir(ROOT)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="*", metavar="PROFILE", help="all of them unless named")
    wanted = parser.parse_args().measure
    if wanted is not None:
        HERE.mkdir(exist_ok=True)
        for regime in REGIMES:
            if not wanted or regime.profile in wanted:
                measure(regime)
    measured = [regime for regime in REGIMES if regime.document.is_file()]
    print("\n\n".join(map(report, measured)) or "nothing is measured yet; --measure does it")


def chosen() -> dict[str, traces.Request]:
    """Return the first held-out request of every category, by id."""
    found = {}
    for request in traces.load("suite").requests:
        if "held-out" in request.tags:
            found.setdefault(category(request), request)
    return {request.id: request for request in found.values()}


def measure(regime: Regime) -> None:
    """Run what is missing of one regime."""
    kept = HERE / regime.profile
    options = ["--trace", "suite", "--model", "smollm2", "--dtype", regime.dtype, "--profile", regime.profile]
    options += [option for policy in regime.all_policies for option in ("--policy", policy)]
    options += [option for request in chosen() for option in ("--request", request)]
    options += ["--rounds", str(regime.rounds), "--tokens", str(TOKENS), "--save", str(kept), "--json"]
    print("$ replay", *options, file=sys.stderr)
    environment = {**os.environ, **({"LD_PRELOAD": regime.preload} if regime.preload else {})}
    program = str(Path(sys.executable).with_name("replay"))
    done = subprocess.run([program, *options], env=environment, stdout=subprocess.PIPE, check=True)
    regime.document.write_bytes(gzip.compress(done.stdout, mtime=0))
    rounds = kept / "rounds.jsonl"
    if rounds.is_file():
        rounds.with_name("rounds.jsonl.gz").write_bytes(gzip.compress(rounds.read_bytes(), mtime=0))
        rounds.unlink()


def report(regime: Regime) -> str:
    """Return every policy's speedups, measured with their intervals, and what they come to."""
    document = json.loads(gzip.decompress(regime.document.read_bytes()))
    runs = {said(**found["policy"]): found["requests"] for found in document["runs"]}
    requests = chosen()
    bounds = oracles(regime, requests)
    rows = [(regime.profile, "oracle", *(cell for name in runs for cell in (short(name), "from", "to")))]
    for place, (name, request) in enumerate(requests.items()):
        cells = [f"{figure:.3f}" for found in runs.values() for figure in interval(found[place])]
        rows.append((f"{category(request)}{' (prose)' if is_prose(request) else ''}", f"{bounds[name]:.3f}", *cells))
    nulls = [one["null_speedup"] for one in next(iter(runs.values()))]
    means = {
        name: geometric_mean([one["measured"]["decode_speedup"]["median"] for one in found])
        for name, found in runs.items()
    }
    predicted = {
        name: geometric_mean([one["predicted_decode_speedup"]["median"] for one in found])
        for name, found in runs.items()
    }
    bound = geometric_mean(list(bounds.values()))
    summary = [("geometric mean", "measured", "predicted", "of the oracle's gain", f"surely below {FLOOR}")]
    summary += [
        (
            name,
            f"{figure:.3f}",
            f"{predicted[name]:.3f}",
            f"{(figure - 1) / (bound - 1) * 100:.0f} %" if bound > 1.005 else "-",
            ", ".join(one["id"] for one in runs[name] if interval(one)[2] < FLOOR) or "none",
        )
        for name, figure in means.items()
    ]
    summary.append(("plain again", f"{geometric_mean(nulls):.3f}", "1.000", "", ""))
    summary.append(("oracle", "", f"{bound:.3f}", "", ""))
    return f"{table(rows)}\n\n{table(summary)}"


def said(name: str, settings: Mapping[str, Any]) -> str:
    """Return a policy with the settings that are not its defaults, as a command line says it."""
    return str(policies.load(name, {key: "none" if value is None else str(value) for key, value in settings.items()}))


def interval(one: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return a measured decode speedup and the ends of its interval."""
    speedup = one["measured"]["decode_speedup"]
    return speedup["median"], speedup["low"], speedup["high"]


def oracles(regime: Regime, requests: Mapping[str, traces.Request]) -> dict[str, float]:
    """Return the decode speedup that the oracle would have, by id."""
    clocks = TwoClocks(calibration.load(regime.profile).costs())
    runs = {name: simulate(Recording(first_tokens(one, TOKENS)), Oracle(), clocks) for name, one in requests.items()}
    return {name: run.plain_decode_s / run.decode_s for name, run in runs.items()}


def short(name: str) -> str:
    """Return what a column calls a policy."""
    return "gated, tuned" if name.startswith("gated:") else policies.load(name).name


if __name__ == "__main__":
    main()
