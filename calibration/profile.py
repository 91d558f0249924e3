"""A profile: what a model costs on a machine, as measured, with its provenance.

Its file is docs/reference/profile-format.md. History: breakeven-profile/1, the first.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from calibration import checks, yaml_text
from calibration.cost_table import CostTable
from calibration.costs import Costs, spans
from calibration.errors import ProfileError
from calibration.identification import Bound, HostTimes, Shares, identify
from calibration.prefill import Prefill, PrefillTable
from calibration.provenance import Machine, Provenance
from calibration.server_costs import ServerCosts, StorageKind
from calibration.serving import NO_SERVING, NOTHING_KNOWN, Serving
from calibration.serving_file import document as serving_document
from calibration.widths import filled
from traces.files import write_whole

FORMAT = "breakeven-profile/1"
UNKNOWN = "unknown"
SLOW_S = 1.0
"""A pipelined step above this is more often a mistaken unit than a machine."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_name(name: str) -> None:
    """Refuse what no profile can be called.

    Raises:
        ProfileError: it is no plain word.
    """
    if not _WORD.fullmatch(name):
        raise ProfileError(f"name: must be a plain word of letters, digits, '.', '_' and '-' (got {name!r})")


@dataclass(frozen=True)
class Profile:
    """The measured costs of one model on one machine; `KEYS` is the order of the file."""

    name: str
    """A plain word; a shipped profile's is its file's name."""
    machine: Machine
    engine: str
    """What ran the model, with its version."""
    model: str
    dtype: str
    """The weights' type or quantisation, such as bfloat16 or 4bit."""
    measured: str
    """The day, as 2026-10-02, or "unknown"."""
    source: str
    """Where the figures were published, or the command that measured them."""
    bound: Bound
    """Which of the two is the slower in a pipelined plain step."""
    cost: CostTable
    prefill: Prefill | PrefillTable
    notes: tuple[str, ...] = ()
    """What a report that stands on the profile must say beside what follows from it."""
    launch_s: float | None = None
    """Seconds to build and launch a forward; None when only its sum with `read_s` follows from the table."""
    read_s: float | None = None
    """Seconds to read a result once the device is done."""
    run_ahead_s: float | None = None
    """Seconds of device work that may be outstanding when a submit returns; None when nothing limits it."""
    host_work_s: float = 0.0
    """Further seconds of the host per emitted token."""
    provenance: Provenance | None = None
    serving: Serving = NO_SERVING
    """What a server's forwards cost beyond those of one request, as far as it is known."""

    def __post_init__(self) -> None:
        for where in ("name", "engine", "model", "dtype", "source"):
            checks.legible(getattr(self, where), where)
        for place, note in enumerate(self.notes):
            checks.legible(note, f"notes[{place}]")
        checks.legible(self.prefill.source, "prefill.source")
        check_name(self.name)
        if self.measured != UNKNOWN and not _is_day(self.measured):
            raise ProfileError(f"measured: must be a day, as in '2026-10-02', or 'unknown' (got {self.measured!r})")
        if self.bound not in ("device", "host"):
            raise ProfileError(f"bound: must be device or host (got {self.bound!r})")
        for where in ("launch_s", "read_s", "run_ahead_s", "host_work_s"):
            seconds = getattr(self, where)
            if seconds is not None:
                checks.not_negative(seconds, where)
        last = self.cost.used_for[1]
        if isinstance(self.prefill, PrefillTable) and self.prefill.tokens[-1] < last:
            raise ProfileError(
                f"prefill.tokens: ends at {self.prefill.tokens[-1]}, before the last context that used_for declares "
                f"({last})"
            )
        if self.bound == "host" and self.serving != NO_SERVING:
            raise ProfileError("serving: needs bound: device; a host-bound step does not tell what the device takes")
        _ = self.shares  # a contradiction shows here rather than at the first cost asked

    @cached_property
    def shares(self) -> Shares:
        """The host's and the device's part of the table."""
        return identify(self.cost, self.bound, HostTimes(self.launch_s, self.read_s, self.run_ahead_s))

    def costs(self, interpolate_widths: bool = False) -> Costs:
        """Return the costs of a forward for every declared context.

        When launch and read were not measured apart, the whole sum is the read's: one request's times do not depend
        on the split.

        Args:
            interpolate_widths: also give every width between two measured ones, on the line between them.
        """
        shares, table = self.shares, self.cost
        device = dict(zip(table.widths, shares.device_s, strict=True))
        notes = [*self.notes, *shares.notes, self._contexts_note()]
        if min(table.pipelined_s) > SLOW_S:
            notes.append(f"a pipelined step of {min(table.pipelined_s):g} s is very slow; are these milliseconds?")
        if interpolate_widths and len(device) < table.widths[-1]:
            device = filled(device)
            missing = spans(sorted(set(device) - set(table.widths)))
            notes.append(f"widths {missing} are interpolated between the measured {spans(table.widths)}")
        if self.run_ahead_s is None:
            notes.append("run-ahead unlimited: the profile gives none")
        if self.prefill.source:
            notes.append(f"prefill: {self.prefill.source}")
        return Costs(
            name=self.name,
            contexts=range(table.used_for[0], table.used_for[1] + 1),
            device=device,
            launch_s=shares.launch_s,
            read_s=shares.read_s,
            run_ahead_s=math.inf if self.run_ahead_s is None else self.run_ahead_s,
            host_work_s=self.host_work_s,
            prefill=self.prefill,
            measured_at=table.contexts,
            notes=tuple(notes),
            first_use_s=dict(zip(table.widths, table.first_use_s or (), strict=False)),
        )

    def server_costs(self, costs: Costs, storage: StorageKind) -> ServerCosts:
        """Return the costs of a server.

        Args:
            costs: the profile's own, as `costs` made them.
            storage: where rows keep their KV state.
        """
        table = self.serving.dense if storage == "dense" else self.serving.paged
        return ServerCosts(costs, storage, table or NOTHING_KNOWN)

    def document(self) -> dict[str, Any]:
        """Return the profile as plain values, in the order of its file and without what is not known."""
        found: dict[str, Any] = {"format": FORMAT}
        for name in KEYS[1:]:
            value = getattr(self, name)
            if isinstance(value, Machine | Prefill | PrefillTable | Provenance):
                value = _known(value)
            elif isinstance(value, Serving):
                value = serving_document(value) or None
            elif isinstance(value, CostTable):
                value = value.document()
            elif isinstance(value, tuple):
                value = list(value)
            if value is not None and value != [] and (name, value) != ("host_work_s", 0):
                found[name] = value
        return found

    def write(self, path: Path) -> None:
        """Write the profile so that loading it gives an equal one; an existing file is replaced whole.

        Raises:
            ProfileError: the folder does not take it.
        """
        text = "# One machine, one model. Times are in seconds.\n" + yaml_text.dump(self.document())
        try:
            write_whole(path, text)
        except OSError as error:
            raise ProfileError(f"{path}: cannot be written ({error.strerror})") from None

    def _contexts_note(self) -> str:
        contexts, (first, last) = self.cost.contexts, self.cost.used_for
        if len(contexts) == 1:
            return f"measured at context {contexts[0]}, used for {first}..{last}"
        return f"measured at contexts {spans(contexts)}, linear in between, used for {first}..{last}"


KEYS = [
    "format",
    "name",
    "machine",
    "engine",
    "model",
    "dtype",
    "measured",
    "source",
    "bound",
    "notes",
    "cost",
    "prefill",
    "launch_s",
    "read_s",
    "run_ahead_s",
    "host_work_s",
    "provenance",
    "serving",
]
"""The keys of the file, in order."""


def _known(part: Machine | Prefill | PrefillTable | Provenance) -> dict[str, Any]:
    named = {field.name: getattr(part, field.name) for field in fields(part)}
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}
    return {name: value for name, value in listed.items() if value is not None}


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
