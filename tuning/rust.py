"""Constants as lines of Rust, for the reference engine's sources."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from tuning.dimension import Value, shown
from tuning.errors import TuningError

POLICIES = ("fixed", "gated", "graded")
"""The policies that the reference (mlxcel) has."""
NAMES = {
    ("", "pipeline_after"): "PLAIN_ROUNDS_BEFORE_PIPELINE",
    ("gated", "narrow"): "GATED_NARROW_DRAFT",
    ("gated", "full_at"): "GATED_FULL_AT",
    ("gated", "start_ema"): "GATED_START_EMA",
    ("graded", "misses"): "MISSES_BEFORE_COOLDOWN",
    ("graded", "first_pause"): "MIN_COOLDOWN",
    ("graded", "longest_pause"): "MAX_COOLDOWN",
}
"""What the reference (mlxcel) calls a constant, by policy and setting; others take the setting's name."""


def check(policy: str) -> None:
    """Refuse a policy that the reference has no constants of.

    Raises:
        TuningError: it is one.
    """
    if policy not in POLICIES:
        raise TuningError(f"--emit mlxcel: mlxcel has no policy {policy!r} (have: {', '.join(POLICIES)})")


def constants(
    policy: str, changes: Mapping[str, Value], shipped: Mapping[str, Value], evidence: Mapping[str, str]
) -> str:
    """Write the changed constants, each with its part of the evidence as doc comment, below the whole of it.

    Args:
        policy: its name.
        changes: the constants to write.
        shipped: the shipped value of each.
        evidence: texts by heading.
    """
    if not changes:
        return "// The shipped constants stand."
    head = [line for heading, text in evidence.items() for line in _wrapped(f"{_title(heading)}: {text}.", "//")]
    blocks = [
        [
            *_wrapped(f"Shipped: {shown(shipped[name])}. Held out: {evidence['held_out']}.", "///"),
            _line(policy, name, value),
        ]
        for name, value in changes.items()
    ]
    return "\n\n".join("\n".join(lines) for lines in [head, *blocks])


def _line(policy: str, name: str, value: Value) -> str:
    constant = NAMES.get((policy, name)) or NAMES.get(("", name)) or name.upper()
    if isinstance(value, float):
        return f"const {constant}: f64 = {value!r};"
    if isinstance(value, int):
        return f"const {constant}: usize = {value};"
    if value is None:
        return f"const {constant}: Option<f64> = None;"
    return f'const {constant}: &str = "{value}";'


def _title(heading: str) -> str:
    return heading.replace("_", " ").capitalize()


def _wrapped(text: str, mark: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=f"{mark} ", subsequent_indent=f"{mark}   ")
