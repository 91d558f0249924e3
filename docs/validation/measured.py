"""Hold predictions against this machine: `--measure` measures what is missing, without it the tables are printed.

Two matrices of {graded, gated, fixed} on the first 96 tokens of the prompts below, every round forced: SmolLM2 in four
regimes of one machine, and a tiny random llama, whose steps of a few milliseconds can be repeated until noise averages
out; it is forced along the same replies, their tokens renumbered. Calibration uses no prompt at all: it feeds
made-up ids over a KV state that is filled synthetically.

Everything goes into docs/validation/measured/ and is resumed from there; Ctrl-C loses no more than the calibration or
the repeat of a request that it hits.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import calibration
import policies
import traces
from simulator.recorded import Recording
from simulator.replay.matching import first_tokens
from simulator.report import table
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks
from traces import Request

ROOT = Path(__file__).resolve().parents[2]
"""Commands run here, so that what they write names no directory of one machine."""
HERE = Path(__file__).resolve().with_suffix("").relative_to(ROOT)
SHIPPED = Path("calibration/profiles")
POLICIES = ("graded", "gated", "fixed")
PROMPTS = ("chat", "story", "email", "copy", "edit_json", "edit_code")
TOKENS = 96
VOCABULARY = 1024
"""Of the tiny model: more than the distinct tokens of any request."""
QUIET = 0.3
"""A load average below which nothing else is running."""
OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0"


@dataclass(frozen=True)
class Regime:
    """One profile of this machine, and what is replayed on it."""

    name: str
    model: str
    dtype: str | None
    rounds: int
    """Of the replay."""
    calibration: tuple[str, ...] = ()
    """Further options of calibrate."""
    preload: str | None = None
    """A library to load first."""

    @property
    def profile(self) -> Path:
        """The file of the profile: a shipped one, except that of the tiny model."""
        return (HERE if self.name == "tiny" else SHIPPED) / f"{self.name}.yaml"

    @property
    def again(self) -> Path:
        """The file of the profile that was measured after it, to see whether it says the same."""
        return HERE / f"{self.name}-again.yaml"

    @property
    def document(self) -> Path:
        """What replay says of it."""
        return HERE / f"{self.name}.json.gz"


REGIMES = (
    Regime("tiny", str(HERE / "tiny-llama"), None, 50, ("--rounds", "150", "--contexts", "16,256,640")),
    Regime("epyc-smollm2-135m-float32-openblas", "smollm2", "float32", 6, preload=OPENBLAS),
    Regime("epyc-smollm2-135m-bfloat16", "smollm2", "bfloat16", 6),
    Regime("epyc-smollm2-135m-bfloat16-host-work-20ms", "smollm2", "bfloat16", 6, ("--host-work", "20ms")),
    # Its prompts are read as slowly as it decodes, so it goes no further than the suite of recordings does.
    Regime("epyc-smollm2-135m-q4", "smollm2", "q4", 6, ("--contexts", "16,256,1408")),
)


def main() -> None:
    """Measure what was asked for, then print what there is."""
    os.chdir(ROOT)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="*", metavar="REGIME", help="all of them unless named")
    parser.add_argument("--brief", action="store_true", help="one line a regime")
    asked = parser.parse_args()
    if asked.measure is not None:
        HERE.mkdir(exist_ok=True)
        for regime in REGIMES:
            if not asked.measure or regime.name in asked.measure:
                measure(regime)
    measured = [regime for regime in REGIMES if regime.document.is_file()]
    if asked.brief:
        print(table([BRIEF, *map(brief, measured)]))
    else:
        print("\n\n".join(map(report, measured)) or "nothing is measured yet; --measure does it")


def measure(regime: Regime) -> None:
    """Record, calibrate and replay what is missing of one regime."""
    model = ["--model", regime.model, *(["--dtype", regime.dtype] if regime.dtype else [])]
    trace = trace_of(regime)
    if regime.name == "tiny" and not Path(regime.model).is_dir():
        from tests import random_checkpoints

        config = random_checkpoints.SMALL_LLAMA | {"vocab_size": VOCABULARY}
        random_checkpoints.make(Path(regime.model), config, scale=0.05)
    if not trace.is_file():
        shipped = [traces.load(prompt) for prompt in PROMPTS]
        requests = [request for one in shipped for request in one.requests]
        if regime.name == "tiny":
            traces.write(trace, {"model": Path(regime.model).name}, map(renumbered, requests))
        else:
            traces.write(trace, shipped[0].header, requests)
    for profile in (regime.profile, regime.again):
        if not profile.is_file():
            settle()
            # Whoever was killed between the two files left the samples alone.
            run("calibrate", *model, *regime.calibration, "--force", "-o", str(profile), preload=regime.preload)
    kept = HERE / regime.name
    options = [option for policy in POLICIES for option in ("--policy", policy)]
    options += [option for prompt in PROMPTS for option in ("--request", prompt)]
    options += ["--rounds", str(regime.rounds), "--tokens", str(TOKENS), "--save", str(kept), "--json"]
    options += ["--profile", str(regime.profile), "--trace", str(trace)]
    said = run("replay", *model, *options, preload=regime.preload)
    regime.document.write_bytes(gzip.compress(said.encode(), mtime=0))
    rounds = kept / "rounds.jsonl"
    if rounds.is_file():
        rounds.with_name("rounds.jsonl.gz").write_bytes(gzip.compress(rounds.read_bytes(), mtime=0))
        rounds.unlink()


def settle() -> None:
    """Wait until the load average has forgotten what ran before, three minutes at most."""
    for _ in range(18):
        if os.getloadavg()[0] < QUIET:
            return
        time.sleep(10)


def renumbered(request: Request) -> Request:
    """Return a request with its tokens numbered as they first appear, which every lookup sees alike.

    So the tiny model, which knows few tokens, does the very rounds of the large one's replies.
    """
    text = np.concatenate([request.prompt, request.reply[:TOKENS]])
    numbers = {token: number for number, token in enumerate(dict.fromkeys(text.tolist()))}
    ids = [numbers[token] for token in text.tolist()]
    split = len(request.prompt)
    return Request.of(id=request.id, prompt=ids[:split], reply=ids[split:], finish="length")


def run(command: str, *arguments: str, preload: str | None = None) -> str:
    """Run one of the commands, its progress shown, and return what it prints."""
    print("$", command, *arguments, file=sys.stderr)
    environment = {**os.environ, **({"LD_PRELOAD": preload} if preload else {})}
    program = str(Path(sys.executable).with_name(command))
    return subprocess.run([program, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


BRIEF = ("regime", "verify 8", "cells", "that count", "equal", "error: median", "95th percentile", "null: median")
CONTEXT = 256
"""Where a verify of eight is compared with a plain step."""


def brief(regime: Regime) -> tuple[str, ...]:
    """Return what a regime's cells come to."""
    cells = [one for _, one in cells_of(regime)]
    counted = [one for one in cells if counts(one, regime)]
    errors, nulls = errors_of(counted), nulls_of(cells)
    costs = calibration.load(str(regime.profile)).costs()
    return (
        regime.name,
        f"{costs.sync_s(8, CONTEXT) / costs.step_s(CONTEXT):.1f} steps",
        str(len(cells)),
        str(len(counted)),
        str(sum(one["counters_equal"] for one in cells)),
        f"{np.median(errors):.1%}" if errors else "-",
        f"{np.percentile(errors, 95):.1%}" if errors else "-",
        f"{np.median(nulls):.1%}",
    )


def report(regime: Regime) -> str:
    """Return the table of a regime, the worst cell first, and what it comes to."""
    cells = cells_of(regime)
    rows = [("request", "policy", "predicted", "measured", "from", "to", "error", "null", "counts", "counters", "sign")]
    rows += [row(policy, one, regime) for policy, one in cells]
    counted = [one for _, one in cells if counts(one, regime)]
    errors, nulls = errors_of(counted), nulls_of([one for _, one in cells])
    first, second = (predicted(regime, profile) for profile in (regime.profile, regime.again))
    apart = [abs(one / other - 1) for one, other in zip(first, second, strict=True)]
    lines = [
        f"{regime.name}: {len(counted)} of {len(cells)} cells count",
        table(rows),
        f"error of those that count: median {np.median(errors):.1%}, 95th percentile {np.percentile(errors, 95):.1%}"
        if errors
        else "no cell counts",
        f"profile measured twice: predictions differ by {np.median(apart):.1%} in the median, {max(apart):.1%} at most",
        f"null arm of all: median {np.median(nulls):.1%}, 95th percentile {np.percentile(nulls, 95):.1%}",
    ]
    return "\n".join(lines)


def cells_of(regime: Regime) -> list[tuple[str, dict[str, Any]]]:
    """Return the cells of a regime, each a policy and what `replay` says of one request, the worst first."""
    document = json.loads(gzip.decompress(regime.document.read_bytes()))
    cells = [(found["policy"]["name"], one) for found in document["runs"] for one in found["requests"]]
    return sorted(cells, key=lambda cell: -abs(cell[1]["error"]))


def errors_of(cells: list[dict[str, Any]]) -> list[float]:
    """Return how far off each prediction is, without its sign."""
    return [abs(one["error"]) for one in cells]


def nulls_of(cells: list[dict[str, Any]]) -> list[float]:
    """Return how far plain decoding and plain decoding again differ beside each cell."""
    return [abs(one["null_speedup"] - 1) for one in cells]


def predicted(regime: Regime, profile: Path) -> list[float]:
    """Return the decode speedup of every cell by a profile."""
    clocks = TwoClocks(calibration.load(str(profile)).costs())
    trace = traces.load(str(trace_of(regime)))
    recordings = [Recording(first_tokens(request, TOKENS)) for request in trace.requests]
    runs = [simulate(one, policies.load(name), clocks) for name in POLICIES for one in recordings]
    return [run.plain_decode_s / run.decode_s for run in runs]


def trace_of(regime: Regime) -> Path:
    """Return the file of what a regime's engine is forced along."""
    return HERE / f"{Path(regime.model).name}.jsonl.gz"


def counts(one: dict[str, Any], regime: Regime) -> bool:
    """Return whether a cell's null arm is quiet enough to judge a prediction by."""
    return regime.name == "tiny" or abs(one["null_speedup"] - 1) <= 0.015


def row(policy: str, one: dict[str, Any], regime: Regime) -> tuple[str, ...]:
    """Return the row of one cell."""
    speedup = one["measured"]["decode_speedup"]
    predicted = one["predicted_decode_speedup"]["median"]
    spread = (speedup["high"] - speedup["low"]) / 2
    clear = abs(speedup["median"] - 1) > 2 * spread
    right = (predicted > 1) == (speedup["median"] > 1)
    return (
        one["id"],
        policy,
        f"{predicted:.3f}",
        f"{speedup['median']:.3f}",
        f"{speedup['low']:.3f}",
        f"{speedup['high']:.3f}",
        f"{one['error']:+.1%}",
        f"{one['null_speedup']:.3f}",
        "yes" if counts(one, regime) else "no",
        "equal" if one["counters_equal"] else "DIFFER",
        "-" if not clear else "right" if right else "WRONG",
    )


if __name__ == "__main__":
    main()
