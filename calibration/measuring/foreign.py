"""Costs that other programs measured, made into profiles."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from calibration import yaml_text
from calibration.cost_table import WIDEST, CostTable
from calibration.errors import ProfileError
from calibration.prefill import Prefill, PrefillTable
from calibration.profile import Profile
from calibration.profile_file import parse_profile
from calibration.provenance import Machine

SOURCES = ("mlxcel", "llama-batched-bench", "json")
"""What can be imported, by the name that `--from` takes."""

MLXCEL_CONTEXT = 300
"""Tokens of the prompt that mlxcel's printout was measured behind."""
MLXCEL_USED_FOR = (1, 2048)

_PIPELINED = re.compile(r"^\s*pipelined step:\s*(\S+) ms", re.MULTILINE)
_SYNC = re.compile(r"^\s*sync width\s+(\d+):\s*(\S+) ms", re.MULTILINE)


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
        text = Path(where).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        if source == "json":
            return _json(text, where)
        return _mlxcel(text, where, about) if source == "mlxcel" else _batched_bench(text, where, about)
    except ProfileError as error:
        raise ProfileError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None


def _json(text: str, where: str) -> Profile:
    """Read the keys of a profile as one JSON object."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ProfileError(f"not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ProfileError("must be a JSON object with the keys of a profile")
    try:
        return parse_profile(yaml_text.dump(document), where)
    except TypeError as error:
        raise ProfileError(f"holds a value that no profile has ({error})") from None


def _mlxcel(text: str, where: str, about: About) -> Profile:
    """Read the printout of mlxcel's `verify_width_cost`."""
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
    unknown = Prefill(0.0, 0.0, "not known: the printout has none, so it counts as 0")
    return _profile(about, "mlxcel", f"{Path(where).name}, printed by mlxcel's verify_width_cost", table, unknown)


def _seconds(ms: str) -> float:
    try:
        return round(float(ms) / 1000, 9)
    except ValueError:
        raise ProfileError(f"{ms!r} is no number of milliseconds") from None


def _batched_bench(text: str, where: str, about: About) -> Profile:
    """Read llama-batched-bench's table, or its lines of JSON: decoding B sequences costs what verifying B - 1 does."""
    rows = _bench_rows(text)
    widths = tuple(sorted({int(row["pl"]) for row in rows if row["pl"] <= WIDEST}))
    if not widths or widths[0] != 1:
        raise ProfileError("has no row of B 1, which is a plain step")
    lengths = sorted({(int(row["pp"]), int(row["tg"])) for row in rows})
    contexts = tuple(pp + tg // 2 for pp, tg in lengths)
    found = {(int(row["pl"]), int(row["pp"]), int(row["tg"])): row for row in rows}
    sync = []
    for width in widths:
        missing = [pp for pp, tg in lengths if (width, pp, tg) not in found]
        if missing:
            raise ProfileError(f"has no row of B {width} for PP {missing[0]}, and has one for another PP")
        sync.append(tuple(found[width, pp, tg]["t_tg"] / tg for pp, tg in lengths))
    table = CostTable(
        contexts=contexts,
        used_for=(1, contexts[-1] if len(contexts) > 1 else sum(lengths[0])),
        widths=widths,
        pipelined_s=sync[0],
        sync_s=tuple(sync),
    )
    per_token_s = median(found[1, pp, tg]["t_pp"] / pp for pp, tg in lengths if pp)
    prefill = Prefill(0.0, per_token_s, "llama-batched-bench, T_PP of one sequence")
    notes = (
        "llama.cpp reads every step before it begins the next, so the pipelined step is the synchronous one",
        "a verify of width B is taken to cost what decoding B sequences does",
    )
    return _profile(about, "llama.cpp", f"{Path(where).name}, printed by llama-batched-bench", table, prefill, notes)


def _bench_rows(text: str) -> list[dict[str, float]]:
    rows = []
    for line in text.splitlines():
        line = line.strip()
        try:
            if line.startswith("{"):
                entry = json.loads(line)
                rows.append({key: float(entry[key]) for key in ("pp", "tg", "pl", "t_pp", "t_tg")})
            elif line.startswith("|") and (cells := [cell.strip() for cell in line.strip("|").split("|")])[0].isdigit():
                values = [float(cell) for cell in cells]
                rows.append(dict(zip(("pp", "tg", "pl", "n_kv", "t_pp", "s_pp", "t_tg"), values, strict=False)))
        except (ValueError, KeyError, TypeError) as error:
            raise ProfileError(f"a row cannot be read ({error!r}: {line[:60]!r})") from None
    if not rows or any(row.get("t_tg", 0) <= 0 or row["tg"] < 1 for row in rows):
        raise ProfileError("has no rows of llama-batched-bench that decoded anything (a Markdown table or JSON lines)")
    return rows


def _profile(
    about: About, engine: str, source: str, table: CostTable, prefill: Prefill | PrefillTable, notes: Sequence[str] = ()
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
