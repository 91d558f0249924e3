"""A profile that is accepted, for tests that break it in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibration
from calibration import ProfileError

GOOD = """\
format: breakeven-profile/1
name: mine
machine:
  chip: A chip
engine: an engine 1.0
model: A-Model
dtype: bfloat16
measured: "2026-10-02"
source: calibrate --model x
bound: device
notes: [one, two]
cost:
  contexts: [300]
  used_for: [1, 2048]
  widths: [1, 2, 8]
  pipelined_s: [0.0052]
  sync_s: [[0.0063], [0.0071], [0.0203]]
prefill: {fixed_s: 0.0, per_token_s: 0.0001, source: guessed}
"""


def refusal(folder: Path, text: str) -> str:
    """Return what loading a text is refused with, after the name of the file."""
    path = folder / "p.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as refused:
        calibration.load(str(path))
    where, message = str(path), str(refused.value)
    assert message.startswith(where)
    return message.removeprefix(where)
