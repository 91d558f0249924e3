"""The record of one simulated request, and the totals of several.

Field names and their order are a contract with other tools; see docs/reference/counters.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from simulator.run import Run, ratio

Record = dict[str, Any]

COUNTERS = (
    "generated",
    "rounds",
    "drafted_rounds",
    "paused_rounds",
    "proposed",
    "accepted",
    "shadow_confirmations",
    "drains",
    "phantom_drains",
)
"""What a schedule counts; equal wherever the same rounds were made, in a prediction or on an engine."""

SUMMED = ("prompt_tokens", *COUNTERS, "prefill_s", "decode_s", "total_s", "plain_decode_s", "plain_total_s")
"""Fields of a request that its totals are sums of."""


def record(run: Run, *, events: bool = False) -> Record:
    """Return the record of one request; a rate or speedup that is no number is None."""
    schedule = run.schedule
    found = {
        "id": run.request.id,
        "prompt_tokens": len(run.request.prompt),
        **{name: getattr(schedule, name) for name in COUNTERS},
        "prefill_s": run.prefill_s,
        "decode_s": run.decode_s,
        "total_s": run.total_s,
        "tokens_per_s": ratio(run.generated, run.total_s),
        "plain_decode_s": run.plain_decode_s,
        "plain_total_s": run.plain_total_s,
        "plain_tokens_per_s": ratio(run.generated, run.plain_total_s),
        "speedup": run.speedup,
        "decode_speedup": run.decode_speedup,
    }
    return found | {"events": schedule.codes} if events else found


def total(records: Sequence[Record]) -> Record:
    """Return the sums over requests, the rates and speedups of the sums, and the geometric mean speedup."""
    sums = {name: sum(one[name] for one in records) for name in SUMMED}
    speedups = [one["speedup"] for one in records]
    known = speedups and all(speedups)
    return {
        **{name: sums[name] for name in SUMMED[:-2]},
        "tokens_per_s": ratio(sums["generated"], sums["total_s"]),
        "plain_decode_s": sums["plain_decode_s"],
        "plain_total_s": sums["plain_total_s"],
        "plain_tokens_per_s": ratio(sums["generated"], sums["plain_total_s"]),
        "speedup": ratio(sums["plain_total_s"], sums["total_s"]),
        "decode_speedup": ratio(sums["plain_decode_s"], sums["decode_s"]),
        "geomean_speedup": math.exp(math.fsum(map(math.log, speedups)) / len(speedups)) if known else None,
    }
