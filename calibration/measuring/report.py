"""What `calibrate` prints: the table, the host's times, the checks of the time model, and what to do about noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.profile import Profile

Checks = Mapping[str, tuple[float, float]]
"""Predicted and measured seconds of what the time model derives."""


def document(profile: Profile, warnings: Sequence[str], checks: Checks) -> dict[str, Any]:
    """Return the profile as plain values, with the warnings and the checks."""
    held = {name: {"predicted_s": pair[0], "measured_s": pair[1]} for name, pair in checks.items()}
    return {**profile.document(), "warnings": list(warnings), "checks": held}


def text(profile: Profile, checks: Checks) -> str:
    """Return the readable report."""
    table = profile.cost
    head = f"profile  {profile.name}: {profile.model} {profile.dtype} on {profile.machine.chip}"
    lines = [head, "", _row("ms at context", [str(context) for context in table.contexts])]
    lines.append(_row("pipelined step", _cells(table.pipelined_s, table.pipelined_spread_s)))
    for place, width in enumerate(table.widths):
        spread = table.sync_spread_s[place] if table.sync_spread_s else None
        lines.append(_row(f"sync width {width}", _cells(table.sync_s[place], spread)))
    lines += ["", *(f"{name:24}{value}" for name, value in _host(profile).items())]
    if checks:
        title = f"derived by the time model at context {table.contexts[0]}"
        lines += ["", f"{title:50}{'predicted':>12}{'measured':>12}"]
        lines += [
            f"{name:50}{predicted_s * 1e3:9.2f} ms{measured_s * 1e3:9.2f} ms"
            f"  {(predicted_s / measured_s - 1) * 100:+.1f} %"
            for name, (predicted_s, measured_s) in checks.items()
            if measured_s
        ]
    ratio = table.sync_s[-1][0] / table.pipelined_s[0]
    closing = f"a forward of width {table.widths[-1]} costs {ratio:.2f} pipelined steps at context {table.contexts[0]}"
    return "\n".join([*lines, "", closing])


def _host(profile: Profile) -> dict[str, str]:
    shares = profile.shares
    ahead = "unlimited" if profile.run_ahead_s is None else f"{profile.run_ahead_s * 1e3:.2f} ms"
    device = profile.provenance.device if profile.provenance else None
    found = {
        **({"device": device} if device else {}),
        "bound by": profile.bound,
        "launch": f"{shares.launch_s * 1e3:.2f} ms",
        "read": f"{shares.read_s * 1e3:.2f} ms",
        "run-ahead": ahead,
    }
    if profile.host_work_s:
        found["host work per token"] = f"{profile.host_work_s * 1e3:.2f} ms"
    if profile.cost.first_use_s:
        found["first use, all widths"] = f"{sum(profile.cost.first_use_s) * 1e3:.2f} ms"
    return found


def _cells(seconds: Sequence[float], spread: Sequence[float] | None) -> list[str]:
    if spread is None:
        return [f"{one * 1e3:.2f}" for one in seconds]
    return [f"{one * 1e3:.2f} ± {iqr_s / 2 * 1e3:.2f}" for one, iqr_s in zip(seconds, spread, strict=True)]


def _row(title: str, cells: Sequence[str]) -> str:
    return f"{title:16}" + "".join(f"{cell:>20}" for cell in cells)
