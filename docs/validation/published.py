"""Hold predictions against the published figures of Qwen3-8B on a GB10; prints what docs/validation.md shows.

For the two edits the reference engine printed token ids, so its decisions can be replayed: the event codes stored
beside the published counters are what `simulate --events` made of them, and are priced here again. For the prose
prompts only counters are published, which leave open what was pipelined, how wide each verify was and how long the
prompt; the slowest and the fastest run that they allow bound the published rate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import calibration
from calibration import Costs
from simulator.report import table
from simulator.schedule import Schedule, read_codes
from simulator.two_clocks import TwoClocks

CHARACTERS_PER_TOKEN = (2.5, 6.0)
"""Fewest and most characters a token that a prompt may have."""
CONTEXT = 300
"""Where the costs were measured; they are the same at every declared context."""


def main() -> None:
    """Print both tables."""
    published = json.loads(Path(__file__).with_suffix(".json").read_text())
    costs = calibration.load(published["profile"]).costs()
    head = ["prompt", "policy", "counters", "speedup", "predicted", "error", "plain tokens/s", "predicted", "error"]
    print(table([head, *(edit(row, costs) for row in published["edits"])]))
    print()
    head = ["prompt", "policy", "tokens/s", "slowest", "fastest", "within 2 %"]
    print(table([head, *(prose(row, costs) for row in published["prose"])]))


def edit(row: dict[str, Any], costs: Costs) -> list[str]:
    """Return the row of an edit, whose every decision is known."""
    schedule, clocks = Schedule(read_codes(row["events"])), TwoClocks(costs)
    prefill_s = costs.prefill_s(row["prompt_tokens"])
    plain = read_codes("B " + "P " * (schedule.generated - 1) + "P!")
    plain_s = prefill_s + clocks.decode_s(plain, row["prompt_tokens"])
    total_s = prefill_s + clocks.decode_s(schedule.events, row["prompt_tokens"])
    equal = all(getattr(schedule, name) == count for name, count in row["counters"].items())
    rate = schedule.generated / plain_s
    speedup = plain_s / total_s
    cells = [row["prompt"], row["policy"], "equal" if equal else "differ", f"{row['speedup']:.3f}", f"{speedup:.3f}"]
    cells += [error(speedup, row["speedup"]), f"{row['plain_tokens_per_s']:.2f}", f"{rate:.2f}"]
    return [*cells, error(rate, row["plain_tokens_per_s"])]


def prose(row: dict[str, Any], costs: Costs) -> list[str]:
    """Return the row of a prompt of which only counters are known."""
    counters = row["counters"]
    generated, drafted = counters["generated"], counters["drafted_rounds"]
    plain = counters["rounds"] - drafted
    # Two forwards more than the tokens needed: the stop was read with the next forward already submitted.
    wasted = 1 + counters["rounds"] + counters["accepted"] - generated == 2
    narrow_s, wide_s = verifies(drafted, counters["proposed"] / drafted, costs)
    most, fewest = (row["prompt_characters"] / length for length in CHARACTERS_PER_TOKEN)
    slowest_s = costs.prefill_s(round(most)) + plain * costs.sync_s(1, CONTEXT) + wide_s
    fastest_s = costs.prefill_s(round(fewest)) + (plain - wasted) * costs.step_s(CONTEXT) + narrow_s
    slowest, fastest = generated / slowest_s, generated / fastest_s
    within = slowest / 1.02 <= row["tokens_per_s"] <= fastest * 1.02
    cells = [row["prompt"], row["policy"], f"{row['tokens_per_s']:.2f}", f"{slowest:.2f}", f"{fastest:.2f}"]
    return [*cells, "yes" if within else "no"]


def verifies(rounds: int, proposed: float, costs: Costs) -> tuple[float, float]:
    """Return the least and the most that `rounds` verifies can cost whose proposals average `proposed`.

    The cheapest and the dearest mixture of two widths around the average; no mixture of more is beyond both.
    """
    mixtures = []
    for low in range(2, 9):
        for high in range(low, 9):
            if low - 1 <= proposed <= high - 1:
                share = (proposed - (low - 1)) / (high - low) if high > low else 0.0
                mixtures.append((1 - share) * costs.sync_s(low, CONTEXT) + share * costs.sync_s(high, CONTEXT))
    return rounds * min(mixtures), rounds * max(mixtures)


def error(predicted: float, published: float) -> str:
    """Return a signed relative error."""
    return f"{(predicted / published - 1) * 100:+.1f} %"


if __name__ == "__main__":
    main()
