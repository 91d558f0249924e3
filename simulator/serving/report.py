"""The readable report of `simulate --serve`."""

from __future__ import annotations

from collections.abc import Sequence

from calibration import Profile
from policies import LookupPolicy
from simulator.console import one_line
from simulator.report import COUNTERS, answer, origin, table
from simulator.serving.latencies import latencies
from simulator.serving.results import Record, ServedResult
from simulator.serving.tick import Tick

KINDS = ("prefill", "steady", "switch", "sync", "verify")


def serving_report(results: Sequence[ServedResult], profile: Profile) -> str:
    """Return the report of one trace served under one policy or several; the last lines are the answer."""
    first = results[0]
    lines = [origin(first.trace, first.header["model"], len(first.records), profile)]
    lines += [f"server   {first.service}", *_idle(first)]
    lines += [f"policy   {result.policy}" for result in results]
    blocks = ["\n".join(lines), _requests(first) if len(results) == 1 else _policies(results)]
    beside = ([first.plain] if first.plain and first.plain is not first else []) + list(results)
    blocks += [_ticks(beside), *([] if first.untimed else [latencies(beside)])]
    blocks += [
        "\n".join([f"{result.policy}, tick by tick", *map(_line, result.ticks)]) for result in results if result.ticks
    ]
    said = [f"saturated under {one.policy}: {one.saturated}" for one in beside if one.saturated]
    said += [one.unlike for one in results if one.unlike]
    said += [_crowded(one) for one in results if one.crowded and isinstance(one.policy, LookupPolicy)]
    said += [_warm_up(one) for one in results if one.warm_up_s]
    said += [f"not timed: {first.untimed}"] if first.untimed else [*map(_answer, results)]
    return "\n\n".join([*blocks, "\n".join(said)])


def _requests(result: ServedResult) -> str:
    rows = [("request", *COUNTERS.values(), "per verify", "finish")]
    rows += [(one["id"], *_counters(one), one["finish"]) for one in result.records]
    if len(result.records) > 1:
        rows.append(("total", *_counters(result.total), ""))
    reasons = [one_line(f"{one['id']} never proposes: {one['reason']}") for one in result.records if "reason" in one]
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
    heads = ("ticks", *KINDS, "total", "in flight", "false switches", "wasted forwards", "verifies a tick")
    rows: list[Sequence[str]] = [heads]
    for result in results:
        ticks = result.decode_ticks
        rows.append(
            (
                str(result.policy),
                *(str(result.kinds[kind]) for kind in KINDS),
                str(result.kinds.total()),
                f"{result.primed / ticks * 100:.1f} %" if ticks else "-",
                str(result.false_switches),
                str(result.wasted),
                f"{result.verifies / ticks:.3f}" if ticks else "-",
            )
        )
    return table(rows)


def _idle(result: ServedResult) -> list[str]:
    """Say that some clients had nothing to send; each trace is served by itself."""
    clients, requests = result.service.clients or 0, len(result.records)
    if clients <= requests:
        return []
    return [f"         only {requests} request{'s' * (requests != 1)} for {clients} clients: the others send nothing"]


def _crowded(result: ServedResult) -> str:
    share, most = result.crowded / result.decode_ticks, result.service.server.max_batch
    return (
        f"{result.policy}: nobody was asked for a proposal in {share * 100:.3g} % of the decode ticks, "
        f"which had more than {most} row{'s' * (most > 1)} (--max-batch)"
    )


def _warm_up(result: ServedResult) -> str:
    return (
        f"{result.policy}: the first verify of every width took {result.warm_up_s * 1000:.3g} ms, once; "
        "what building its kernels takes is not known and not in it"
    )


def _answer(result: ServedResult) -> str:
    """Return the line that answers the question, per request and in all."""
    ratio = result.speedup
    in_all = "" if ratio is None else f" ({ratio:.2f} times its tokens/s in all)"
    return f"{answer(str(result.policy), result.decode_speedup)}{in_all}"


def _line(tick: Tick) -> str:
    """Return a tick in a line: `verify  a +3 (V4:2), b +1; b stop`."""
    worked = tick.worked
    verified = {one.id: f" (V{one.width}:{one.accepted})" for one in worked.verify}
    rows = ", ".join(f"{name} +{worked.emitted[name]}{verified.get(name, '')}" for name in worked.rows)
    ended = "".join(f"; {row.id} {row.end}" for row in tick.released)
    return one_line(f"{worked.kind:7}  {rows}{ended}")
