"""What a value in a profile is refused for, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibration
from tests.profile_texts import GOOD, refusal

REFUSED = [
    (
        "format: breakeven-profile/1\nname: mine",
        "name: mine\nformat: breakeven-profile/1",
        ": format: must be the first key (got 'name')",
    ),
    ("breakeven-profile/1", "breakeven-profile/2", ": format: must be breakeven-profile/1 (got 'breakeven-profile/2')"),
    ("breakeven-profile/1", "1", ": format: must be breakeven-profile/1 (got 1, which YAML reads as an integer)"),
    ("bound: device\n", "", ": missing key 'bound'"),
    ("model: A-Model\ndtype: bfloat16\n", "", ": missing keys 'model', 'dtype'"),
    ("  widths: [1, 2, 8]\n", "", ": cost: missing key 'widths'"),
    ("  chip: A chip", "  cores: 4", ": machine: missing key 'chip'"),
    ("per_token_s: 0.0001, ", "", ": prefill: missing key 'per_token_s'"),
    (
        "source: guessed}",
        "sauce: guessed}",
        ": prefill: unknown key 'sauce' (known: fixed_s, per_token_s, source); did you mean 'source'?",
    ),
    (
        "  widths:",
        "  width:",
        ": cost: unknown key 'width' (known: contexts, used_for, widths, pipelined_s, sync_s, "
        "pipelined_spread_s, sync_spread_s, pipelined_runs, sync_runs, first_use_s); did you mean 'widths'?",
    ),
    (
        "bound: device",
        "bound: device\ncolour: red",
        ": unknown key 'colour' (known: format, name, machine, engine, model, dtype, measured, source, bound, cost, "
        "prefill, notes, launch_s, read_s, run_ahead_s, host_work_s, provenance, serving)",
    ),
    ("bound: device", "bound: device\nbound: host", ":11: duplicate key 'bound'"),
    ("  widths: [1, 2, 8]", "  widths: [1, 2, 8]\n  widths: [1, 2]", ":16: duplicate key 'widths'"),
    ("bound: device", "bound: device\non: 1", ":11: a key must be a plain word (got on, which YAML reads as bool)"),
    ("bound: device", "bound: device\n[a]: 1", ":11: a key must be a plain word"),
    ('"2026-10-02"', "2026-10-02", ": measured: must be text in quotes (got 2026-10-02, which YAML reads as a date)"),
    ('"2026-10-02"', '"2026-13-02"', ": measured: must be a day, as in '2026-10-02', or 'unknown' (got '2026-13-02')"),
    ('"2026-10-02"', '"20261002"', ": measured: must be a day, as in '2026-10-02', or 'unknown' (got '20261002')"),
    ("dtype: bfloat16", "dtype: off", ": dtype: must be text in quotes (got off, which YAML reads as a boolean)"),
    ("dtype: bfloat16", "dtype: 3.10", ": dtype: must be text in quotes (got 3.10, which YAML reads as a number)"),
    ("dtype: bfloat16", "dtype:", ": dtype: must be text (got nothing)"),
    ("dtype: bfloat16", "dtype: [a]", ": dtype: must be text (got a list)"),
    ("dtype: bfloat16", 'dtype: " "', ": dtype: must be one line of printable text (got ' ')"),
    ("dtype: bfloat16", r'dtype: "a\nb"', r": dtype: must be one line of printable text (got 'a\nb')"),
    ("dtype: bfloat16", r'dtype: "\e[31m"', r": dtype: must be one line of printable text (got '\x1b[31m')"),
    (
        "name: mine",
        "name: my profile",
        ": name: must be a plain word of letters, digits, '.', '_' and '-' (got 'my profile')",
    ),
    (
        "name: mine",
        "name: ../mine",
        ": name: must be a plain word of letters, digits, '.', '_' and '-' (got '../mine')",
    ),
    ("bound: device", "bound: gpu", ": bound: must be device or host (got 'gpu')"),
    ("notes: [one, two]", "notes: one", ": notes: must be a list (got 'one')"),
    (
        "notes: [one, two]",
        "notes: [one, 2]",
        ": notes[1]: must be text in quotes (got 2, which YAML reads as an integer)",
    ),
    (
        "0.0052",
        "52e-4",
        ": cost.pipelined_s[0]: YAML reads '52e-4' as text; write a point and a signed exponent, as in 5.0e-4",
    ),
    (
        "0.0052",
        "5.2e3",
        ": cost.pipelined_s[0]: YAML reads '5.2e3' as text; write a point and a signed exponent, as in 5.0e-4",
    ),
    ("0.0052", '"0.0052"', ": cost.pipelined_s[0]: must be a number (got '0.0052' in quotes)"),
    ("0.0052", "fast", ": cost.pipelined_s[0]: must be a number (got 'fast')"),
    ("0.0052", "yes", ": cost.pipelined_s[0]: must be a number (got yes, which YAML reads as a boolean)"),
    ("0.0052", "~", ": cost.pipelined_s[0]: must be a number (got nothing)"),
    ("0.0052", "{a: 1}", ": cost.pipelined_s[0]: must be a number (got a mapping)"),
    ("0.0052", ".inf", ": cost.pipelined_s[0]: must be a finite number (got .inf)"),
    ("0.0052", "-.INF", ": cost.pipelined_s[0]: must be a finite number (got -.INF)"),
    ("0.0052", ".nan", ": cost.pipelined_s[0]: must be a finite number (got .nan)"),
    ("0.0052", "1:30.5", ": cost.pipelined_s[0]: must be a number (got 1:30.5, which YAML reads as a number)"),
    ("0.0052", "012", ": cost.pipelined_s[0]: must be a number (got 012, which YAML reads as octal)"),
    ("0.0052", "1.0e+999", ": cost.pipelined_s[0]: must be above 0 and below 1000 s (got inf)"),
    ("0.0052", "0.0", ": cost.pipelined_s[0]: must be above 0 and below 1000 s (got 0.0)"),
    ("0.0052", "-0.0052", ": cost.pipelined_s[0]: must be above 0 and below 1000 s (got -0.0052)"),
    ("0.0071", "1000", ": cost.sync_s[1][0]: must be above 0 and below 1000 s (got 1000.0)"),
    ("0.0001", "-0.1", ": prefill.per_token_s: must be at least 0 and below 1000 s (got -0.1)"),
    (
        "bound: device",
        "bound: device\nhost_work_s: -1.0",
        ": host_work_s: must be at least 0 and below 1000 s (got -1.0)",
    ),
    ("[1, 2, 8]", "[1, 010, 11]", ": cost.widths[1]: must be an integer (got 010, which YAML reads as octal)"),
    ("[1, 2, 8]", "[1, 0x2, 8]", ": cost.widths[1]: must be an integer (got 0x2, which YAML reads as hexadecimal)"),
    ("[1, 2, 8]", "[1, 0b1, 8]", ": cost.widths[1]: must be an integer (got 0b1, which YAML reads as binary)"),
    ("[1, 2, 8]", "[1, 1:30, 8]", ": cost.widths[1]: must be an integer (got 1:30, which YAML reads as base sixty)"),
    (
        "[1, 2, 8]",
        "[1, 1_0, 8]",
        ": cost.widths[1]: must be an integer (got 1_0, which YAML reads as an integer with separators)",
    ),
    (
        "[1, 2, 8]",
        f"[1, 2, {'9' * 5000}]",
        f": cost.widths[2]: must be an integer (got {'9' * 60}..., which YAML reads as a very large integer)",
    ),
    ("[1, 2, 8]", "[1, 2.0, 8]", ": cost.widths[1]: must be an integer (got 2.0, which YAML reads as a number)"),
    ("[1, 2, 8]", "[true, 2, 8]", ": cost.widths[0]: must be an integer (got true, which YAML reads as a boolean)"),
    ("[1, 2, 8]", "8", ": cost.widths: must be a list (got 8, which YAML reads as an integer)"),
    ("  chip: A chip", "  chip: A chip\n  cores: 0", ": machine.cores: must be at least 1 (got 0)"),
    ("  chip: A chip", "  chip: A chip\n  cores: many", ": machine.cores: must be an integer (got 'many')"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_is_wrong_with_a_value_is_said_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert refusal(tmp_path, GOOD.replace(old, new, 1)) == message


def test_a_number_with_a_point_and_a_signed_exponent_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(GOOD.replace("0.0052", "5.2e-3"))

    assert calibration.load(str(path)).cost.pipelined_s == (0.0052,)
