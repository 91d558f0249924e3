"""The reference's history, replayed: what each step towards its shipped rules did, and `graded`'s 36-point grid.

Its authors published four steps on an M4 Pro, and later one to `gated` on a GB10. Their prompts are five; here each
stands for the categories of the recorded suite that are like it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from statistics import geometric_mean

from suite_study import Row, whole

import calibration
import policies
from policies import Policy
from simulator.report import table
from tuning.evaluation import Alone
from tuning.kinds import category

M4 = "m4-pro-qwen3-1.7b-4bit"
GB10 = "gb10-qwen3-1.7b-4bit"
PROMPTS = ("edit_fn", "edit_json", "summary", "write", "story")
LIKE = {
    "edit_fn": ("edit-code",),
    "edit_json": ("edit-data", "edit-table"),
    "summary": ("summary",),
    "write": ("write",),
    "story": ("write",),
}
"""Categories of the suite that a published prompt stands for; stories are among what is written."""
NEVER = 1024
"""Plain rounds before pipelining that no reply reaches."""


@dataclass(frozen=True)
class Step:
    """One version of the rules, and the speedups that were published for it."""

    what: str
    policy: str
    published: Mapping[str, float]


M4_STEPS = (
    Step(
        "n-grams from 1 token, full blocks, all synchronous",
        f"fixed:ngram_min=1,pipeline_after={NEVER}",
        {"edit_fn": 1.84, "edit_json": 1.82, "write": 0.74},
    ),
    Step(
        "+ n-grams from 2 tokens and a governor",
        f"graded:pipeline_after={NEVER}",
        {"edit_fn": 1.80, "edit_json": 1.73, "summary": 1.12, "write": 0.91},
    ),
    Step(
        "+ every plain round pipelined",
        "graded:pipeline_after=0",
        {"edit_fn": 1.89, "edit_json": 1.51, "summary": 1.22, "write": 1.04},
    ),
    Step(
        "+ tuned governor and threshold (graded)",
        "graded",
        {"edit_fn": 1.93, "edit_json": 1.73, "summary": 1.13, "write": 1.01},
    ),
)
GB10_STEPS = (
    Step("graded", "graded", {"edit_fn": 1.16, "edit_json": 1.39, "summary": 0.82, "write": 1.07, "story": 0.83}),
    Step("gated", "gated", {"edit_fn": 1.22, "edit_json": 1.41, "summary": 0.99, "write": 1.02, "story": 0.98}),
)
MULTIPLIERS = (1.0, 1.5, 2.0, 3.0)
MISSES = (2, 3, 4)
WAITS = (0, 1, 2)


@cache
def evaluator(machine: str) -> Alone:
    """Return what says how fast the whole suite is on a machine."""
    return Alone(whole(), [calibration.load(machine).costs(interpolate_widths=True)], 7)


def speedup(policy: Policy, machine: str, prompt: str) -> float:
    """Return the geometric mean speedup over the requests that a published prompt stands for."""
    (row,) = evaluator(machine).speedups(policy)
    figures = [figure for figure, one in zip(row, whole(), strict=True) if category(one) in LIKE[prompt]]
    return geometric_mean(figures)


def main() -> None:
    """Print the study."""
    print(table(steps(M4, M4_STEPS)), table(steps(GB10, GB10_STEPS)), sep="\n\n")
    print()
    print(table(agreement()), table(grid()), sep="\n\n")


def steps(machine: str, versions: Sequence[Step]) -> list[Row]:
    """Return replayed and published speedups of every version."""
    names = [name for name in PROMPTS if any(name in one.published for one in versions)]
    rows: list[Row] = [(machine, *(cell for name in names for cell in (name, "published")))]
    for one in versions:
        policy = policies.load(one.policy)
        cells = [(f"{speedup(policy, machine, name):.2f}", said(one, name)) for name in names]
        rows.append((one.what, *(cell for pair in cells for cell in pair)))
    return rows


def said(one: Step, name: str) -> str:
    """Return what was published for a prompt."""
    return f"{one.published[name]:.2f}" if name in one.published else "-"


def agreement() -> list[Row]:
    """Return the direction of every step that was published for a prompt, and whether the replay goes the same way."""
    rows: list[Row] = [("step", "prompt", "published", "replayed", "direction")]
    for machine, versions in ((M4, M4_STEPS), (GB10, GB10_STEPS)):
        for before, after in pairwise(versions):
            for name in PROMPTS:
                if name not in before.published or name not in after.published:
                    continue
                theirs = after.published[name] / before.published[name] - 1
                ours = speedup(policies.load(after.policy), machine, name) / speedup(
                    policies.load(before.policy), machine, name
                )
                same = "the same" if theirs * (ours - 1) > 0 else "the other"
                rows.append((after.what, name, f"{theirs * 100:+.0f} %", f"{(ours - 1) * 100:+.1f} %", same))
    agreeing = sum(row[-1] == "the same" for row in rows)
    return [*rows, ("all", "", "", "", f"{agreeing} of {len(rows) - 1} the same")]


def grid() -> list[Row]:
    """Return `graded`'s grid on the M4 Pro, the best first: geometric mean over the four prompts."""
    found = []
    for multiplier, misses, wait in product(MULTIPLIERS, MISSES, WAITS):
        policy = policies.load(f"graded:multiplier={multiplier},misses={misses},pipeline_after={wait}")
        figures = [speedup(policy, M4, name) for name in PROMPTS[:4]]
        found.append((geometric_mean(figures), figures, (multiplier, misses, wait)))
    found.sort(reverse=True)
    rows: list[Row] = [("rank", "multiplier", "misses", "wait", "mean", *PROMPTS[:4])]
    for rank, (mean, figures, (multiplier, misses, wait)) in enumerate(found, start=1):
        shipped = (multiplier, misses, wait) == (2.0, 3, 2)
        if rank <= 8 or shipped or rank == len(found):
            title = f"{rank}{' (shipped)' if shipped else ''}"
            cells = [f"{figure:.3f}" for figure in (mean, *figures)]
            rows.append((title, f"{multiplier:g}", str(misses), str(wait), *cells))
    return rows


if __name__ == "__main__":
    main()
