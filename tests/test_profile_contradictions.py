"""What a table of costs is refused for, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profile_texts import GOOD, refusal

REFUSED = [
    ("[1, 2, 8]", "[]", ": cost.widths: must have at least one entry"),
    ("[1, 2, 8]", "[2, 3, 8]", ": cost.widths: must start at 1 (got 2)"),
    ("[1, 2, 8]", "[1, 8, 2]", ": cost.widths: must ascend (got 2 after 8)"),
    ("[1, 2, 8]", "[1, 2, 2]", ": cost.widths: has 2 twice"),
    ("[1, 2, 8]", "[1, 2, 66]", ": cost.widths: must be at most 65 (got 66)"),
    ("[300]", "[]", ": cost.contexts: must have at least one entry"),
    ("[300]", "[-1]", ": cost.contexts: must be at least 0 (got -1)"),
    ("[1, 2048]", "[1]", ": cost.used_for: must be the first and the last context (got 1 entries)"),
    ("[1, 2048]", "[2048, 1]", ": cost.used_for: must be first..last within 0..1048576 (got 2048..1)"),
    ("[1, 2048]", "[1, 10000000]", ": cost.used_for: must be first..last within 0..1048576 (got 1..10000000)"),
    ("[1, 2048]", "[301, 2048]", ": cost.used_for: begins at 301, after the first measured context (300)"),
    ("[1, 2048]", "[1, 299]", ": cost.used_for: ends at 299, before the last measured context (300)"),
    ("[0.0052]", "[0.0052, 0.0053]", ": cost.pipelined_s: must have one entry per context (got 2 for 1)"),
    (
        "[[0.0063], [0.0071], [0.0203]]",
        "[[0.0063], [0.0071]]",
        ": cost.sync_s: must have one row per width (got 2 for 3)",
    ),
    ("[0.0071]", "[0.0071, 0.0072]", ": cost.sync_s[1]: must have one entry per context (got 2 for 1)"),
    ("[0.0071]", "0.0071", ": cost.sync_s[1]: must be a list (got 0.0071, which YAML reads as a number)"),
    (
        "cost:\n",
        "cost:\n  pipelined_spread_s: [0.1, 0.1]\n",
        ": cost.pipelined_spread_s: must have one entry per context (got 2 for 1)",
    ),
    ("cost:\n", "cost:\n  sync_spread_s: [[0.1]]\n", ": cost.sync_spread_s: must have one row per width (got 1 for 3)"),
    (
        "cost:\n",
        "cost:\n  pipelined_spread_s: [-0.1]\n",
        ": cost.pipelined_spread_s[0]: must be at least 0 and below 1000 s (got -0.1)",
    ),
    ("cost:\n", "cost:\n  sync_runs: 0\n", ": cost.sync_runs: must be at least 1 (got 0)"),
    ("machine:\n  chip: A chip", "machine: A chip", ": machine: must be a mapping (got 'A chip')"),
    ("fixed_s: 0.0, per_token_s: 0.0001", "tokens: [16, 2048]", ": prefill: missing key 'seconds'"),
    (
        "fixed_s: 0.0, per_token_s: 0.0001",
        "tokens: [16, 2048], seconds: [0.1]",
        ": prefill.seconds: must have one entry per entry of tokens (got 1 for 2)",
    ),
    (
        "fixed_s: 0.0, per_token_s: 0.0001",
        "tokens: [0, 2048], seconds: [0.1, 0.2]",
        ": prefill.tokens: must be at least 1 (got 0)",
    ),
    (
        "fixed_s: 0.0, per_token_s: 0.0001",
        "tokens: [16, 1024], seconds: [0.1, 0.2]",
        ": prefill.tokens: ends at 1024, before the last context that used_for declares (2048)",
    ),
    (
        "fixed_s: 0.0,",
        "fixed_s: 0.0, tokens: [16],",
        ": prefill: unknown key 'fixed_s' (known: tokens, seconds, source)",
    ),
    (
        "[[0.0063]",
        "[[0.0051]",
        ": cost.sync_s: width 1 at context 300 is below the pipelined step "
        "and no spread explains it (0.0051 s against 0.0052 s)",
    ),
    (
        "[[0.0063]",
        "[[0.0105]",
        ": cost.sync_s: width 1 at context 300 is above twice the pipelined step, "
        "more than any overlap saves (0.0105 s against 0.0052 s)",
    ),
    (
        "[0.0071]",
        "[0.0010]",
        ": cost.sync_s: width 2 at context 300 leaves the device no time beside launch and read (0.0011 s)",
    ),
    ("bound: device", "bound: device\nlaunch_s: 0.001", ": launch_s: needs read_s beside it"),
    ("bound: device", "bound: device\nread_s: 0.001", ": read_s: needs launch_s beside it"),
    (
        "bound: device",
        "bound: device\nlaunch_s: 0.005\nread_s: 0.001",
        ": launch_s: launch and read are above the pipelined step, "
        "so the host is the slower; bound: host? (0.006 s against 0.0052 s)",
    ),
    (
        "bound: device",
        "bound: device\nrun_ahead_s: 0.001",
        ": run_ahead_s: is shorter than the overlap measured, "
        "so launch_s and read_s are needed beside it (0.001 s against 0.0011 s)",
    ),
    (
        "bound: device",
        "bound: host\nrun_ahead_s: 0.001",
        ": run_ahead_s: needs launch_s and read_s beside it when bound is host",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_contradicts_itself_is_said_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert refusal(tmp_path, GOOD.replace(old, new, 1)) == message


def test_a_grid_is_never_extrapolated(tmp_path: Path) -> None:
    grid = GOOD.replace("[300]", "[100, 300]").replace("[0.0052]", "[0.0051, 0.0052]")
    grid = grid.replace("[[0.0063], [0.0071], [0.0203]]", "[[0.006, 0.0063], [0.007, 0.0071], [0.02, 0.0203]]")

    assert refusal(tmp_path, grid) == (
        ": cost.used_for: ends at 2048, beyond the last measured context (300); costs are never extrapolated"
    )


def test_a_synchronous_step_far_below_the_pipelined_one_is_refused_even_with_spreads(tmp_path: Path) -> None:
    text = GOOD.replace("[[0.0063]", "[[0.0049]").replace("cost:\n", "cost:\n  pipelined_spread_s: [0.0001]\n")

    assert refusal(tmp_path, text) == (
        ": cost.sync_s: width 1 at context 300 is below the pipelined step by twice their spread or more "
        "(0.0049 s against 0.0052 s)"
    )
