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
    ("", "misses"): "MISSES_BEFORE_COOLDOWN",
    ("graded", "first_pause"): "MIN_COOLDOWN",
    ("graded", "longest_pause"): "MAX_COOLDOWN",
}
"""What the reference (mlxcel) calls a constant, by policy and setting; others take the setting's name."""
OPTIONAL = ("min_tokens_per_round",)
"""Settings that may be none."""
BESIDE = ("held_out", "derived_from", "date")
"""The parts of the evidence that stand beside every constant."""


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
    """Write the changed constants, each with its evidence as doc comment, below what is true of all.

    Args:
        policy: its name.
        changes: the constants to write.
        shipped: the shipped value of each.
        evidence: texts by heading.
    """
    if not changes:
        return "// The shipped constants stand."
    others = {heading: text for heading, text in evidence.items() if heading not in BESIDE}
    head = [line for heading, text in others.items() for line in _wrapped(f"{_title(heading)}: {text}.", "//")]
    blocks = [
        [
            *_wrapped(
                f"Shipped: {shown(shipped[name])}. Held out: {evidence['held_out']}. "
                f"Derived from: {evidence['derived_from']}, {evidence['date']}.",
                "///",
            ),
            *_line(policy, name, value),
        ]
        for name, value in changes.items()
    ]
    return "\n\n".join("\n".join(lines) for lines in [head, *blocks])


def _line(policy: str, name: str, value: Value) -> list[str]:
    known = NAMES.get((policy, name)) or NAMES.get(("", name))
    strange = [] if known else ["// Not a constant of mlxcel's by this name."]
    return [*strange, f"const {known or name.upper()}: {_typed(name, value)};"]


def _typed(name: str, value: Value) -> str:
    """Return a value with its type, as in a constant's definition.

    >>> _typed("narrow", 3), _typed("full_at", 1.75), _typed("min_tokens_per_round", 3.0), _typed("match", "latest")
    ('usize = 3', 'f64 = 1.75', 'Option<f64> = Some(3.0)', '&str = "latest"')
    """
    if name in OPTIONAL:
        return f"Option<f64> = {'None' if value is None else f'Some({float(value)!r})'}"
    if isinstance(value, float):
        return f"f64 = {value!r}"
    if isinstance(value, int):
        return f"usize = {value}"
    return f'&str = "{value}"'


def _title(heading: str) -> str:
    return heading.replace("_", " ").capitalize()


def _wrapped(text: str, mark: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=f"{mark} ", subsequent_indent=f"{mark}   ")
