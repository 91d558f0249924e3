"""The tables of a serving report that are about time: waiting, first tokens, gaps between tokens, and rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.report import table
from simulator.serving.distribution import PERCENTS
from simulator.serving.results import ServedResult
from simulator.serving.timeline import Timeline

Row = Sequence[str]
HEADS = ("mean", *(f"p{percent}" for percent in PERCENTS))
MEASURES = {
    "ttft_s": ("time to first token, ms", 1000.0),
    "itl_s": ("time between tokens, ms", 1000.0),
    "decode_tokens_per_s": ("decode tokens/s of a request, the slow tail to the right", 1.0),
}
"""What the tables are titled, and by how much figures are multiplied."""


def latencies(results: Sequence[ServedResult]) -> str:
    """Return one table for each measure, and one of the whole run, policies below each other."""
    timed = [(str(one.policy), one.timeline, one.timeline.document()) for one in results if one.timeline]
    tables = []
    for name, (title, scale) in MEASURES.items():
        rows: list[Row] = [(title, *HEADS)]
        rows += [(policy, *_cells(found[name], scale)) for policy, _, found in timed]
        tables.append(table(rows))
    rows = [("in all", "tokens/s", "s", "waiting: mean", "p95", "most", "refused")]
    rows += [(policy, *_run(line)) for policy, line, _ in timed]
    return "\n\n".join([*tables, table(rows)])


def _cells(spread: object, scale: float) -> list[str]:
    if not isinstance(spread, Mapping):
        return ["-"] * len(HEADS)
    return [f"{spread[head] * scale:.4g}" for head in HEADS]


def _run(line: Timeline) -> list[str]:
    queue = line.queue_spread
    rate = "-" if line.tokens_per_s is None else f"{line.tokens_per_s:.1f}"
    waiting = (f"{queue['mean']:.2f}", f"{queue['p95']:.0f}") if queue else ("-", "-")
    return [rate, f"{line.span_s:.3f}", *waiting, str(line.longest_queue), str(len(line.rejected))]
