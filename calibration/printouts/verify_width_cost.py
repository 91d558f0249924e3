"""Printouts of the reference engine's `verify_width_cost` example."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from calibration.cost_table import CostTable
from calibration.errors import ProfileError
from calibration.printouts.about import NO_PROMPTS, About
from calibration.profile import Profile

CONTEXT = 300
"""Tokens of the prompt that mlxcel's printout was measured behind."""
USED_FOR = (1, 2048)
PIPELINED_RUNS, SYNC_RUNS = 5, 40
"""How often it measures each, as its source has it."""

_PIPELINED = re.compile(r"^[ \t]*pipelined step:\s*(\S+) ms", re.MULTILINE)
_SYNC = re.compile(r"^[ \t]*sync width\s+(\d{1,9}):\s*(\S+) ms", re.MULTILINE)


def read(text: str, where: str, about: About) -> Profile:
    """Return the profile that a printout comes to, or of several the one under the model's heading.

    Raises:
        ProfileError: it is none, or none of several is the model's.
    """
    text = _printout(text, about)
    pipelined, sync = _PIPELINED.findall(text), _SYNC.findall(text)
    if len(pipelined) != 1 or not sync:
        raise ProfileError(
            "is no printout of mlxcel's verify_width_cost (one line 'pipelined step: X ms' and lines "
            f"'sync width W: X ms' are wanted; got {len(pipelined)} and {len(sync)})"
        )
    table = CostTable(
        contexts=(CONTEXT,),
        used_for=USED_FOR,
        widths=tuple(int(width) for width, _ in sync),
        pipelined_s=(_seconds(pipelined[0]),),
        sync_s=tuple((_seconds(ms),) for _, ms in sync),
        pipelined_runs=PIPELINED_RUNS,
        sync_runs=SYNC_RUNS,
    )
    return about.profile("mlxcel", f"{Path(where).name}, printed by mlxcel's verify_width_cost", table, NO_PROMPTS)


def _printout(text: str, about: About) -> str:
    begins = [match.start() for match in _PIPELINED.finditer(text)]
    if len(begins) < 2:
        return text
    titles = [_title(text[last:begin]) for last, begin in pairwise([0, *begins])]
    model = about.model.rpartition("/")[2].casefold()
    name = next((name for name in (f"{model}-{about.dtype.casefold()}", model) if titles.count(name) == 1), None)
    if name is None:
        raise ProfileError(
            f"holds {len(begins)} printouts ({', '.join(titles)}); --model and --dtype must name one, as MODEL or "
            f"MODEL-DTYPE (got {about.model} and {about.dtype})"
        )
    place = titles.index(name)
    return text[begins[place] : [*begins, len(text)][place + 1]]


def _title(text: str) -> str:
    """Return the last heading in what stands before a printout."""
    headings = [line for line in text.splitlines() if line.startswith("#")]
    return headings[-1].strip("# \t").casefold() if headings else "one without a heading"


def _seconds(ms: str) -> float:
    try:
        return round(float(ms) / 1000, 9)
    except ValueError:
        raise ProfileError(f"{ms!r} is no number of milliseconds") from None
