"""The readable report of `simulate --serve`."""

from __future__ import annotations

from collections.abc import Sequence

from calibration import Profile
from simulator.report import COUNTERS, origin, table
from simulator.serving.results import Record, ServedResult
from simulator.serving.tick import Tick

KINDS = ("prefill", "steady", "switch", "sync", "verify")


def serving_report(results: Sequence[ServedResult], profile: Profile) -> str:
    """Return the report of one trace served under one policy or several."""
    first = results[0]
    lines = [origin(first.trace, first.header["model"], len(first.records), profile), f"server   {first.service}"]
    lines += [f"policy   {result.policy}" for result in results]
    blocks = ["\n".join(lines), _requests(first) if len(results) == 1 else _policies(results), _ticks(results)]
    blocks += [
        "\n".join([f"{result.policy}, tick by tick", *map(_line, result.ticks)]) for result in results if result.ticks
    ]
    return "\n\n".join(blocks)


def _requests(result: ServedResult) -> str:
    rows = [("request", *COUNTERS.values(), "per verify", "finish")]
    rows += [(one["id"], *_counters(one), one["finish"]) for one in result.records]
    if len(result.records) > 1:
        rows.append(("total", *_counters(result.total), ""))
    reasons = [f"{one['id']} never proposes: {one['reason']}" for one in result.records if "reason" in one]
    return "\n".join([table(rows), *reasons])


def _policies(results: Sequence[ServedResult]) -> str:
    rows = [("policy", *COUNTERS.values(), "per verify")]
    rows += [(str(result.policy), *_counters(result.total)) for result in results]
    return table(rows)


def _counters(one: Record) -> list[str]:
    """Return the counters, and the tokens that a verify landed on average."""
    verifies = one["drafted_rounds"]
    return [*(str(one[name]) for name in COUNTERS), f"{one['accepted'] / verifies:.2f}" if verifies else "-"]


def _ticks(results: Sequence[ServedResult]) -> str:
    rows: list[Sequence[str]] = [("ticks", *KINDS, "total")]
    rows += [
        (str(result.policy), *(str(result.kinds[kind]) for kind in KINDS), str(result.kinds.total()))
        for result in results
    ]
    return table(rows)


def _line(tick: Tick) -> str:
    """Return a tick in a line: `verify  a +3 (V4:2), b +1; b stop`."""
    worked = tick.worked
    verified = {one.id: f" (V{one.width}:{one.accepted})" for one in worked.verify}
    rows = ", ".join(f"{name} +{worked.emitted[name]}{verified.get(name, '')}" for name in worked.rows)
    ended = "".join(f"; {row.id} {row.end}" for row in tick.released)
    return f"{worked.kind:7}  {rows}{ended}"
