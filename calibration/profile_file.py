"""Profiles by name or by file."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from calibration import fields
from calibration.cost_table import CostTable
from calibration.errors import ProfileError
from calibration.fields import integer, number, optional, several, text
from calibration.identification import Bound
from calibration.profile import FORMAT, KEYS, Profile
from calibration.provenance import Machine, Provenance
from calibration.serving import NO_SERVING
from calibration.serving_file import prefill, serving, used_for
from calibration.strict_yaml import Scalar, Tree, parse
from traces.files import exists

SHIPPED = Path(__file__).parent / "profiles"
DEFAULT_PROFILE = "gb10-qwen3-1.7b-4bit"
"""The name of the shipped profile that predictions stand on when none is named."""
LARGEST_BYTES = 1_000_000

_OPTIONAL = ("notes", "launch_s", "read_s", "run_ahead_s", "host_work_s", "provenance", "serving")


def names() -> list[str]:
    """Return the names of the shipped profiles, sorted."""
    return sorted(path.name.removesuffix(".yaml") for path in SHIPPED.glob("*.yaml"))


def load(where: str) -> Profile:
    """Read a profile.

    Args:
        where: a file, else the name of a shipped profile.

    Raises:
        ProfileError: there is none, or it cannot be used.
    """
    path = Path(where)
    there = exists(path)
    if not path.is_file():
        if where in names():
            path = SHIPPED / f"{where}.yaml"
        elif there and where:
            raise ProfileError(f"{where}: is not a file")
        elif where.endswith((".yaml", ".yml")) or path.name != where:
            raise ProfileError(f"{where}: there is no such file (shipped profiles: {', '.join(names())})")
        else:
            near = difflib.get_close_matches(where, names(), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ProfileError(f"no profile named {where!r} (shipped: {', '.join(names())}){hint}")
    return parse_profile(_text(path, where), where)


def shipped(name: str) -> Profile:
    """Read a shipped profile, whatever lies in the working directory."""
    return parse_profile(_text(SHIPPED / f"{name}.yaml", name), name)


def parse_profile(text: str, where: str) -> Profile:
    """Read a profile out of the text of a file.

    Args:
        text: the whole document.
        where: what errors call it.

    Raises:
        ProfileError: it cannot be used.
    """
    document = parse(text, where)
    try:
        return _profile(document)
    except ProfileError as error:
        raise ProfileError(f"{where}: {error}") from None


def folder(where: str) -> Path:
    """Return the folder that a profile is loaded from, where the file of its samples may be."""
    path = Path(where)
    return path.parent if path.is_file() else SHIPPED


def _text(path: Path, where: str) -> str:
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise ProfileError(f"{where}: is too large for a profile ({size} bytes, at most {LARGEST_BYTES})")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProfileError(f"{where}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ProfileError(f"{where}: cannot be read ({error.strerror})") from None


def _profile(document: Tree) -> Profile:
    _check_format(document)
    required = [key for key in KEYS if key not in _OPTIONAL]
    tree = fields.mapping(document, "", required, _OPTIONAL)
    words = {key: text(tree[key], key) for key in ("name", "engine", "model", "dtype", "measured", "source", "bound")}
    seconds = {key: optional(number, tree, "", key) for key in ("launch_s", "read_s", "run_ahead_s")}
    table, settled = _table(tree["cost"]).settled()
    return Profile(
        name=words["name"],
        machine=_machine(tree["machine"]),
        engine=words["engine"],
        model=words["model"],
        dtype=words["dtype"],
        measured=words["measured"],
        source=words["source"],
        bound=cast(Bound, words["bound"]),  # checked by the profile
        cost=table,
        prefill=prefill(tree["prefill"], "prefill"),
        notes=(optional(several(text), tree, "", "notes") or ()) + settled,
        **seconds,
        host_work_s=optional(number, tree, "", "host_work_s") or 0.0,
        provenance=optional(_provenance, tree, "", "provenance"),
        serving=optional(serving, tree, "", "serving") or NO_SERVING,
    )


def _check_format(document: Tree) -> None:
    if not isinstance(document, dict):
        raise ProfileError(f"must be a mapping (got {fields.got(document)})")
    first = next(iter(document), None)
    if first != "format":
        raise ProfileError(f"format: must be the first key (got {first!r})" if first else "is empty")
    version = document["format"]
    if not isinstance(version, Scalar) or version.text != FORMAT:
        raise ProfileError(f"format: must be {FORMAT} (got {fields.got(version)})")


def _machine(tree: Tree) -> Machine:
    found = fields.mapping(tree, "machine", ["chip"], ["cores", "memory", "os"])
    return Machine(
        chip=text(found["chip"], "machine.chip"),
        cores=optional(integer, found, "machine.", "cores"),
        memory=optional(text, found, "machine.", "memory"),
        os=optional(text, found, "machine.", "os"),
    )


def _provenance(tree: Tree, where: str) -> Provenance:
    found = fields.mapping(tree, where, [], [field.name for field in dataclasses.fields(Provenance)])
    return Provenance(**{name: text(value, f"{where}.{name}") for name, value in found.items()})


def _table(tree: Tree) -> CostTable:
    required = ["contexts", "used_for", "widths", "pipelined_s", "sync_s"]
    found = fields.mapping(
        tree,
        "cost",
        required,
        ["pipelined_spread_s", "sync_spread_s", "pipelined_runs", "sync_runs", "first_use_s"],
    )
    row: Callable[[Tree, str], tuple[float, ...]] = several(number)
    return CostTable(
        contexts=several(integer)(found["contexts"], "cost.contexts"),
        used_for=used_for(found["used_for"], "cost.used_for"),
        widths=several(integer)(found["widths"], "cost.widths"),
        pipelined_s=row(found["pipelined_s"], "cost.pipelined_s"),
        sync_s=several(row)(found["sync_s"], "cost.sync_s"),
        pipelined_spread_s=optional(row, found, "cost.", "pipelined_spread_s"),
        sync_spread_s=optional(several(row), found, "cost.", "sync_spread_s"),
        pipelined_runs=optional(integer, found, "cost.", "pipelined_runs"),
        sync_runs=optional(integer, found, "cost.", "sync_runs"),
        first_use_s=optional(row, found, "cost.", "first_use_s"),
    )
