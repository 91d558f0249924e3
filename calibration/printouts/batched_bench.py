"""What llama-batched-bench prints: decoding B sequences at once costs what verifying B - 1 proposals does."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from calibration.checks import short
from calibration.cost_table import WIDEST, CostTable
from calibration.errors import ProfileError
from calibration.prefill import Prefill
from calibration.printouts.about import NO_PROMPTS, About
from calibration.profile import Profile

_SEPARATE = re.compile(r"\bis_tg_separate = 1\b")


class BenchRow(NamedTuple):
    """A row of llama-batched-bench."""

    pp: int
    """Tokens of each prompt."""
    tg: int
    """Tokens generated behind each."""
    pl: int
    """Sequences decoded at once."""
    t_pp: float
    """Seconds of all prompts."""
    t_tg: float
    """Seconds of all generated tokens."""

    @property
    def context(self) -> int:
        """Positions before a generated token, on average."""
        return self.pp + self.tg // 2

    @property
    def step_s(self) -> float:
        """Seconds of one forward of all sequences."""
        return self.t_tg / self.tg


def read(text: str, where: str, about: About) -> Profile:
    """Return the profile that its table comes to, or its lines of JSON.

    Rows of one B behind as many positions are runs of the same. The program leaves out what its memory has no room
    for, so the widest forwards may be missing behind long prompts.

    Raises:
        ProfileError: it has no such rows, or not those that a profile needs.
    """
    if _SEPARATE.search(text):
        raise ProfileError("was measured with -tgs, one sequence after the other, and has no cost of a wider forward")
    rows = _bench_rows(text)
    runs: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in rows:
        runs[row.pl, row.context].append(row.step_s)
    contexts = tuple(sorted({row.context for row in rows}))
    every = sorted({row.pl for row in rows if row.pl <= WIDEST})
    widths = tuple(width for width in every if all((width, context) in runs for context in contexts))
    if every[:1] != [1]:
        raise ProfileError("has no row of B 1, which is a plain step")
    if widths[:1] != (1,) or (len(widths) == 1 and len(every) > 1):
        raise ProfileError("has no B above 1 with a row for every PP and TG, nor is each of them behind B 1")
    sync_s = tuple(tuple(median(runs[width, context]) for context in contexts) for width in widths)
    table = CostTable(
        contexts=contexts,
        used_for=(1, contexts[-1] if len(contexts) > 1 else max(row.pp + row.tg for row in rows)),
        widths=widths,
        pipelined_s=sync_s[0],
        sync_s=sync_s,
    )
    prompts = [row.t_pp / row.pp for row in rows if row.pl == 1 and row.pp]
    prefill = Prefill(0.0, median(prompts), "llama-batched-bench, T_PP of one sequence") if prompts else NO_PROMPTS
    notes = (
        "llama.cpp reads every step before it begins the next, so the pipelined step is the synchronous one",
        "a verify of width B is taken to cost what decoding B sequences does",
        *(
            f"B {width} is left out, for it was not measured for every PP and TG"
            for width in every
            if width not in widths
        ),
    )
    return about.profile("llama.cpp", f"{Path(where).name}, printed by llama-batched-bench", table, prefill, notes)


def _bench_rows(text: str) -> list[BenchRow]:
    rows = []
    for line in map(str.strip, text.splitlines()):
        try:
            if line.startswith("{"):
                entry = json.loads(line)
                rows.append(_bench_row(*(entry[name] for name in BenchRow._fields)))
            elif line.startswith("|") and (cells := [cell.strip() for cell in line.strip("|").split("|")])[0].isdigit():
                pp, tg, pl, _, t_pp, _, t_tg, *_ = cells
                rows.append(_bench_row(pp, tg, pl, t_pp, t_tg))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ProfileError(f"a row cannot be read ({error!r}: {short(line)!r})") from None
    if not rows:
        raise ProfileError("has no rows of llama-batched-bench that decoded anything (a Markdown table or JSON lines)")
    return rows


def _bench_row(pp: Any, tg: Any, pl: Any, t_pp: Any, t_tg: Any) -> BenchRow:
    row = BenchRow(int(pp), int(tg), int(pl), float(t_pp), float(t_tg))
    if row.pp < 0 or row.tg < 1 or row.pl < 1 or not (0 <= row.t_pp < math.inf and 0 < row.t_tg < math.inf):
        raise ValueError("nothing was decoded, or in no time")
    return row
