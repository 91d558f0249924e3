"""Costs that other programs measured, made into profiles."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from calibration import yaml_text
from calibration.cost_table import WIDEST, CostTable
from calibration.errors import ProfileError
from calibration.prefill import Prefill
from calibration.profile import Profile
from calibration.profile_file import parse_profile
from calibration.provenance import Machine

SOURCES = ("mlxcel", "llama-batched-bench", "json")
"""What can be imported, by the name that `--from` takes."""

MLXCEL_CONTEXT = 300
"""Tokens of the prompt that mlxcel's printout was measured behind."""
MLXCEL_USED_FOR = (1, 2048)

_PIPELINED = re.compile(r"^[ \t]*pipelined step:\s*(\S+) ms", re.MULTILINE)
_SYNC = re.compile(r"^[ \t]*sync width\s+(\d{1,9}):\s*(\S+) ms", re.MULTILINE)

_BESIDE = ("warnings", "checks")
"""Keys that `calibrate --json` prints beside those of the profile."""

_UNKNOWN = Prefill(0.0, 0.0, "not known: the printout has none, so it counts as 0")

_SEPARATE = re.compile(r"\bis_tg_separate = 1\b")


@dataclass(frozen=True)
class About:
    """What the file does not say and the user has to."""

    name: str
    model: str
    dtype: str
    chip: str
    measured: str


def import_profile(where: str, source: str, about: About) -> Profile:
    """Return the profile that a file comes to.

    Args:
        where: the file.
        source: which program wrote it, one of `SOURCES`.
        about: what the file does not say; nothing of it counts for json, which says all.

    Raises:
        ProfileError: it cannot be read, or is not what that program writes.
    """
    try:
        text = Path(where).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        if source == "json":
            return _json(text, where)
        return _mlxcel(text, where, about) if source == "mlxcel" else _batched_bench(text, where, about)
    except ProfileError as error:
        raise ProfileError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None


def _json(text: str, where: str) -> Profile:
    """Read the keys of a profile as one JSON object, in any order; one that is null is as good as left out."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ProfileError("must be a JSON object with the keys of a profile")
    known = {key: value for key, value in _said(document).items() if key not in _BESIDE}
    first = {"format": known["format"]} if "format" in known else {}
    try:
        keys = yaml_text.dump(first | known)
    except (TypeError, AttributeError, ValueError) as error:
        raise ProfileError(f"holds a value that no profile has ({error})") from None
    return parse_profile(keys, where)


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items() if one is not None}
    return value


def _mlxcel(text: str, where: str, about: About) -> Profile:
    """Read the printout of mlxcel's `verify_width_cost`, or of several the model's, by the line in front of it."""
    text = _printout(text, about)
    pipelined, sync = _PIPELINED.findall(text), _SYNC.findall(text)
    if len(pipelined) != 1 or not sync:
        raise ProfileError(
            "is no printout of mlxcel's verify_width_cost (one line 'pipelined step: X ms' and lines "
            f"'sync width W: X ms' are wanted; got {len(pipelined)} and {len(sync)})"
        )
    table = CostTable(
        contexts=(MLXCEL_CONTEXT,),
        used_for=MLXCEL_USED_FOR,
        widths=tuple(int(width) for width, _ in sync),
        pipelined_s=(_seconds(pipelined[0]),),
        sync_s=tuple((_seconds(ms),) for _, ms in sync),
        pipelined_runs=5,
        sync_runs=40,
    )
    return _profile(about, "mlxcel", f"{Path(where).name}, printed by mlxcel's verify_width_cost", table, _UNKNOWN)


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


def _batched_bench(text: str, where: str, about: About) -> Profile:
    """Read llama-batched-bench's table, or its lines of JSON: decoding B sequences costs what verifying B - 1 does.

    Rows of one B behind as many positions are runs of the same. The program leaves out what its memory has no room
    for, so the widest forwards may be missing behind long prompts.
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
    prefill = Prefill(0.0, median(prompts), "llama-batched-bench, T_PP of one sequence") if prompts else _UNKNOWN
    notes = (
        "llama.cpp reads every step before it begins the next, so the pipelined step is the synchronous one",
        "a verify of width B is taken to cost what decoding B sequences does",
        *(
            f"B {width} is left out, for it was not measured for every PP and TG"
            for width in every
            if width not in widths
        ),
    )
    return _profile(about, "llama.cpp", f"{Path(where).name}, printed by llama-batched-bench", table, prefill, notes)


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
            raise ProfileError(f"a row cannot be read ({error!r}: {line[:60]!r})") from None
    if not rows:
        raise ProfileError("has no rows of llama-batched-bench that decoded anything (a Markdown table or JSON lines)")
    return rows


def _bench_row(pp: Any, tg: Any, pl: Any, t_pp: Any, t_tg: Any) -> BenchRow:
    row = BenchRow(int(pp), int(tg), int(pl), float(t_pp), float(t_tg))
    if row.pp < 0 or row.tg < 1 or row.pl < 1 or not (0 <= row.t_pp < math.inf and 0 < row.t_tg < math.inf):
        raise ValueError("nothing was decoded, or in no time")
    return row


def _profile(
    about: About, engine: str, source: str, table: CostTable, prefill: Prefill, notes: Sequence[str] = ()
) -> Profile:
    settled, said = table.settled()
    return Profile(
        name=about.name,
        machine=Machine(chip=about.chip),
        engine=engine,
        model=about.model,
        dtype=about.dtype,
        measured=about.measured,
        source=source,
        bound="device",
        cost=settled,
        prefill=prefill,
        notes=(*notes, *said),
    )
