"""The readable report of `simulate`: what happened, where the time went, and on the last line the answer."""

from __future__ import annotations

from collections.abc import Sequence

from calibration import Profile
from simulator.console import one_line
from simulator.records import Record, total
from simulator.results import Result
from simulator.run import kind_order

Row = Sequence[str]

COUNTERS = {
    "prompt_tokens": "prompt",
    "generated": "generated",
    "rounds": "rounds",
    "drafted_rounds": "drafted",
    "paused_rounds": "paused",
    "proposed": "proposed",
    "accepted": "accepted",
    "drains": "drains",
    "phantom_drains": "phantom",
}
"""The counters a table shows, and over which heads."""
TITLES = (*COUNTERS.values(), "tokens/s", "speedup")


def heading(profile: Profile, notes: Sequence[str], named: bool) -> str:
    """Return the lines that say what every figure stands on.

    Args:
        profile: what forwards cost.
        notes: what a report that stands on it must say.
        named: whether the user named it; the default is said to be one.
    """
    what = f"{profile.model} {profile.dtype} on {profile.machine.chip}, {profile.engine}, {profile.measured}"
    lines = [f"profile  {profile.name}{'' if named else ' (the default)'}: {what}"]
    return "\n".join([*lines, *(f"         {note}" for note in notes)])


def report(results: Sequence[Result], profile: Profile) -> str:
    """Return the report of one trace under one policy or several."""
    result = results[0]
    lines = [origin(result.trace, result.header["model"], len(result.records), profile)]
    if len(results) == 1:
        lines.append(f"policy   {result.policy}")
    blocks = ["\n".join(lines), _requests(result) if len(results) == 1 else _policies(results), _spent(results)]
    events = [
        one_line(f"{one.policy}  {record['id']}  {record['events']}")
        for one in results
        for record in one.records
        if "events" in record
    ]
    if events:
        blocks.append("\n".join(["policy, request and events", *events]))
    # Under every policy, a run without prompt lookup stands beside the same plain decoding, which is shown once.
    blocks += dict.fromkeys(
        f"{comparison.title(str(one.policy))}\n{table(list(comparison.rows()))}"
        for one in results
        for comparison in one.comparisons
    )
    return "\n\n".join([*blocks, "\n".join(answer(str(one.policy), one.total["speedup"]) for one in results)])


def origin(trace: str, model: str, requests: int, profile: Profile) -> str:
    """Return the lines that say what was said, and by another model than the profile's where that is so."""
    lines = [one_line(f"trace    {trace}: {requests} request{'s' * (requests > 1)} of {model}")]
    lines += [f"         {note}" for note in other_model(model, profile)]
    return "\n".join(lines)


def other_model(model: str, profile: Profile) -> list[str]:
    """Return what must be said of a trace of another model than the profile's, else nothing."""
    if published_alike(model, profile):
        return []
    return [f"another model than the profile's {profile.model}: only the times are that machine's"]


def published_alike(model: str, profile: Profile) -> bool:
    """Return whether a model is the profile's, whoever publishes it and whether or not its name says the dtype."""
    published = model.rpartition("/")[2].lower()
    return published in (profile.model.lower(), f"{profile.model}-{profile.dtype}".lower())


def across(answers: Sequence[Sequence[Result]]) -> str:
    """Return the speedups of every policy on every trace, and the answer over all their requests."""
    policies = [str(result.policy) for result in answers[0]]
    rows: list[Row] = [("speedup by trace", *policies)]
    rows += [(results[0].trace, *(_ratio(result.total["speedup"]) for result in results)) for results in answers]
    pooled = [total([one for results in answers for one in results[place].records]) for place in range(len(policies))]
    rows.append(("all requests, geometric mean", *(_ratio(one["geomean_speedup"]) for one in pooled)))
    rows.append(("all requests, total time", *(_ratio(one["speedup"]) for one in pooled)))
    lines = [answer(policy, one["speedup"]) for policy, one in zip(policies, pooled, strict=True)]
    return "\n\n".join([table(rows), "over all requests, by total time", "\n".join(lines)])


def answer(policy: str, speedup: float | None) -> str:
    """Return the line that answers the question.

    >>> answer("gated", 0.979)
    'gated: 0.98 times plain decoding; 2.1 % slower'
    """
    if speedup is None:
        return f"{policy}: no time was spent, so there is nothing to compare"
    percent = abs(speedup - 1) * 100
    if percent < 0.05:
        return f"{policy}: {speedup:.2f} times plain decoding; no difference"
    amount = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}".removesuffix(".0")
    return f"{policy}: {speedup:.2f} times plain decoding; {amount} % {'faster' if speedup > 1 else 'slower'}"


def _requests(result: Result) -> str:
    rows: list[Row] = [("request", *TITLES)]
    rows += [(one["id"], *_counters(one)) for one in result.records]
    if len(result.records) > 1:
        rows.append(("total", *_counters(result.total)))
    return table(rows)


def _policies(results: Sequence[Result]) -> str:
    rows: list[Row] = [("policy", *TITLES, "geomean")]
    plain = results[0].total
    if results[0].policy.name != "plain":
        blanks = [""] * (len(TITLES) - 4)
        generated = str(plain["generated"])
        rows.append(
            (
                "plain",
                str(plain["prompt_tokens"]),
                generated,
                *blanks,
                _rate(plain["plain_tokens_per_s"]),
                "1.000",
                "1.000",
            )
        )
    for result in results:
        sums = result.total
        rows.append((str(result.policy), *_counters(sums), _ratio(sums["geomean_speedup"])))
    return table(rows)


def _counters(one: Record) -> list[str]:
    return [*(str(one[name]) for name in COUNTERS), _rate(one["tokens_per_s"]), _ratio(one["speedup"])]


def _spent(results: Sequence[Result]) -> str:
    """Show where the time went: rounds, seconds and share for one policy, seconds for several."""
    kinds = sorted({kind for result in results for kind in result.spent}, key=kind_order)
    sums = [result.total for result in results]
    unit, scale = ("s", 1.0) if max(one["total_s"] for one in sums) >= 1 else ("ms", 1000.0)
    if len(results) > 1:
        rows: list[Row] = [(f"where the time went, {unit}", *(str(result.policy) for result in results))]
        for kind in kinds:
            seconds = [result.spent[kind].seconds if kind in result.spent else 0.0 for result in results]
            rows.append((kind, *(fixed(one * scale) for one in seconds)))
        rows.append(("prefill", *(fixed(one["prefill_s"] * scale) for one in sums)))
        rows.append(("total", *(fixed(one["total_s"] * scale) for one in sums)))
        return table(rows)
    spent, whole = results[0].spent, sums[0]
    rows = [("where the time went", "rounds", unit, "share")]
    for kind in kinds:
        part = spent[kind]
        rows.append((kind, str(part.rounds), fixed(part.seconds * scale), _share(part.seconds, whole["total_s"])))
    prefill_s = whole["prefill_s"]
    rows.append(
        ("prefill", str(len(results[0].records)), fixed(prefill_s * scale), _share(prefill_s, whole["total_s"]))
    )
    rows.append(("total", "", fixed(whole["total_s"] * scale), ""))
    return table(rows)


def _share(part: float, whole: float) -> str:
    return f"{fixed(part / whole * 100, 1)} %" if whole else ""


def fixed(value: float, places: int = 3) -> str:
    """Return a figure with so many decimal places; what rounds to nothing has no sign.

    >>> fixed(-1e-9), fixed(-0.25, 1)
    ('0.000', '-0.2')
    """
    return f"{round(value, places) + 0.0:.{places}f}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def table(rows: Sequence[Row]) -> str:
    """Lay rows out in columns, the first to the left and the others to the right, two spaces between."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
