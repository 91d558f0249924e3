"""Does a break-even rule keep what prompt lookup gains on a server and remove what it loses on plain chat?

Prints the chat stratum, the constants tuned on half of it, and the targets, each at both ends of every assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from server_study import (
    CORNERS,
    ENDS,
    VERIFY,
    Assumed,
    Requests,
    decode_s,
    gain,
    oracle_gain,
    percent,
    served,
    shared_gain,
    span,
)
from server_tuning import DEFAULT, KEEP, WAITS, around, best, halves, least_kept, tuned, worst
from server_workloads import benchmark, recorded, stratum

import policies
from policies import Policy
from policies.gated import Gated
from policies.plain import Plain
from simulator.report import table
from simulator.serving.server import Server

Row = Sequence[str]
LEAST_CHAT = -0.01
"""The smallest gain on plain chat that passes."""
BELIEFS = ("memory=5", "memory=12", "doubt=1", "doubt=3")
"""Other settings of `breakeven`, to show how flat its choice is."""
FACTORS = (VERIFY[0], 1.0, VERIFY[1])


class Copy(NamedTuple):
    """A copy whose gain has to be kept."""

    name: str
    requests: Requests
    ends: Sequence[Assumed] = ENDS


def main() -> None:
    """Print the study."""
    rule, derived = tuned(), policies.load("breakeven")
    print(table(questions()), table(waits()), table(neighbours(rule)), sep="\n\n")
    print(f"\nthe tuned rule: {rule}\n")
    print(table(judged(rule, derived)), table(copied(rule, derived)), table(shared(rule, derived)), sep="\n\n")
    print()
    print(table(targets(rule, derived)), table(beliefs(derived)), sep="\n\n")


def questions() -> list[Row]:
    """Return what `gated` as it is does to every question of the stratum."""
    chosen = stratum()
    records = served(chosen, DEFAULT, Assumed(), 1, Server()).records
    changes = [each_gain(chosen, DEFAULT, Assumed(factor)) for factor in FACTORS]
    rows: list[Row] = [("chat, under gated", "tokens", "proposed", "accepted", *(f"verify x {f:g}" for f in FACTORS))]
    for place, record in enumerate(records):
        share = f"{record['accepted'] / record['proposed'] * 100:.0f} %"
        cells = [str(record["generated"]), str(record["proposed"]), share]
        rows.append((record["id"], *cells, *(percent(change[place]) for change in changes)))
    proposed, accepted = (sum(record[name] for record in records) for name in ("proposed", "accepted"))
    totals = [str(sum(record["generated"] for record in records)), str(proposed), f"{accepted / proposed * 100:.0f} %"]
    rows.append(("range", *[""] * 3, *(f"{percent(min(change))} .. {percent(max(change))}" for change in changes)))
    rows.append(("total", *totals, *(percent(gain(chosen, DEFAULT, Assumed(factor))) for factor in FACTORS)))
    left = tuple(question for question in recorded("chat_questions") if question not in chosen)
    gains = [percent(gain(left, DEFAULT, Assumed(factor))) for factor in FACTORS]
    rows.append((f"the other {len(left)}", *[""] * 3, *gains))
    return rows


def each_gain(requests: Requests, policy: Policy, assumed: Assumed) -> list[float]:
    """Return by how much the decode rate of every request differs from plain decoding's."""
    times = zip(decode_s(requests, Plain(), assumed), decode_s(requests, policy, assumed), strict=True)
    return [plain_s / own_s - 1 for plain_s, own_s in times]


def waits() -> list[Row]:
    """Return the best rule of the grid for every re-prime wait."""
    rows: list[Row] = [("wait", "tokens a round", "confirmations", "tuned on", "judged on", "copies keep")]
    for wait in WAITS:
        rule = best(wait)
        constants = (f"{rule.min_tokens_per_round:g}", str(rule.resume_confirmations)) if rule else ("none", "none")
        rows.append((str(wait), *constants, *(scores(rule) if rule else ["-"] * 3)))
    return rows


def neighbours(rule: Gated) -> list[Row]:
    """Return how flat the choice is: the tuned rule with one setting changed at a time."""
    return [("rule", "tuned on", "judged on", "copies keep"), *((str(near), *scores(near)) for near in around(rule))]


def scores(rule: Gated) -> list[str]:
    """Return the worse gain of both ends on both halves, and the least that is kept on the copies tuned on."""
    return [*(percent(worst(half, rule)) for half in halves()), f"{least_kept(rule) * 100:.0f} %"]


def judged(*rules: Policy) -> list[Row]:
    """Return the gain on the halves of the stratum and on the whole."""
    first, second = halves()
    sets = {"tuned on": first, "judged on": second, "all of it": stratum()}
    rows: list[Row] = [("chat, one client", "questions", "gated", "tuned", "breakeven", "oracle")]
    for name, requests in sets.items():
        cells = [span([gain(requests, policy, end) for end in ENDS]) for policy in (DEFAULT, *rules)]
        rows.append((name, str(len(requests)), *cells, span([oracle_gain(requests, end) for end in ENDS])))
    return rows


def copies() -> list[Copy]:
    """Return the copies, short ones first."""
    dense = tuple(Assumed(factor, storage="dense") for factor in VERIFY)
    found = [Copy("copy (recorded)", recorded("copy")), Copy("copy 640 (synthetic)", benchmark("copy", 1))]
    found += [Copy("long_copy (recorded)", recorded("long_copy"))]
    found += [Copy(f"numbered copy {at} (synthetic)", benchmark("numbered_copy", 1, at)) for at in (1024, 2048, 4096)]
    return [*found, Copy("numbered copy 8192 (synthetic), dense", benchmark("numbered_copy", 1, 8192), dense)]


def copied(*rules: Policy) -> list[Row]:
    """Return what copies gain, and the least that is kept of it."""
    rows: list[Row] = [("copies, one client", "gated", "tuned", "kept", "breakeven", "kept")]
    for copy in copies():
        cells = [span([gain(copy.requests, DEFAULT, end) for end in copy.ends])]
        for rule in rules:
            cells += [
                span([gain(copy.requests, rule, end) for end in copy.ends]),
                f"{copy_kept(copy, rule) * 100:.0f} %",
            ]
        rows.append((copy.name, *cells))
    return rows


def copy_kept(copy: Copy, rule: Policy) -> float:
    return min(gain(copy.requests, rule, end) / gain(copy.requests, DEFAULT, end) for end in copy.ends)


def shared(*rules: Policy) -> list[Row]:
    """Return what two clients gain together, at the ends of both assumptions."""
    made = {f"{style} (synthetic)": benchmark(style, 4) for style in ("plain", "copy")}
    rows: list[Row] = [("two clients, four ends", "gated", "tuned", "breakeven")]
    for name, requests in {**made, "chat, all of it": stratum()}.items():
        rows.append((name, *(span(two_rows(requests, policy)) for policy in (DEFAULT, *rules))))
    return rows


def two_rows(requests: Requests, policy: Policy) -> list[float]:
    return [shared_gain(requests, policy, corner, 2, Server()) for corner in CORNERS]


def targets(*rules: Policy) -> list[Row]:
    """Return every target with the figure that decides it, and whether it holds at all ends."""
    rows: list[Row] = [("target", "at least", "tuned", "holds", "breakeven", "holds")]
    chat = [worst(halves()[1], rule) for rule in rules]
    rows.append(verdict("chat, judged on", LEAST_CHAT, chat))
    rows.append(verdict("chat, all of it", LEAST_CHAT, [worst(stratum(), rule) for rule in rules]))
    for name, found in (("copies keep", copies()[:2]), ("long copies keep", copies()[2:])):
        rows.append(verdict(name, KEEP, [min(copy_kept(copy, rule) for copy in found) for rule in rules], sign=""))
    for style in ("plain", "copy"):
        least = [min(two_rows(benchmark(style, 4), rule)) for rule in rules]
        rows.append(verdict(f"two clients, {style}", 0.0, least))
    return rows


def beliefs(derived: Policy) -> list[Row]:
    """Return the figures that decide the targets for `breakeven` when it believes sooner or later."""
    styles = ("plain", "copy")
    rows: list[Row] = [
        ("rule", "tuned on", "judged on", "all of it", "worst", "copies keep", *(f"two, {one}" for one in styles))
    ]
    for policy in (derived, *(policies.load(f"breakeven:{one}") for one in BELIEFS)):
        chat = [percent(worst(requests, policy)) for requests in (*halves(), stratum())]
        chat.append(percent(min(min(each_gain(stratum(), policy, end)) for end in ENDS)))
        least = min(copy_kept(copy, policy) for copy in copies())
        shared_least = [percent(min(two_rows(benchmark(style, 4), policy))) for style in styles]
        rows.append((str(policy), *chat, f"{least * 100:.0f} %", *shared_least))
    return rows


def verdict(name: str, least: float, figures: Sequence[float], sign: str = "+") -> Row:
    cells = [cell for figure in figures for cell in (f"{figure * 100:{sign}.1f} %", "yes" if figure >= least else "no")]
    return (name, f"{least * 100:{sign}.0f} %", *cells)


if __name__ == "__main__":
    main()
