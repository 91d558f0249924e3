"""What losing the overlap of host and device costs: short schedules priced on a real machine's profile."""

from __future__ import annotations

import calibration
from simulator.schedule import read_codes
from simulator.two_clocks import TwoClocks

PROMPT_TOKENS = 300

costs = calibration.load("gb10-qwen3-1.7b-4bit").costs()
clocks = TwoClocks(costs)
step_s = costs.step_s(PROMPT_TOKENS)
print(f"P = {step_s * 1000:.3f} ms, e = {costs.overlap_s(PROMPT_TOKENS) / step_s:.3f} pipelined steps")


def steps(codes: str) -> float:
    """Return what a schedule costs, in pipelined steps."""
    return clocks.decode_s(read_codes(codes), PROMPT_TOKENS) / step_s


print()
for meaning, codes in [
    ("a synchronous step", "S"),
    ("four pipelined forwards", "B P P P R"),
    ("a verify of width 3", "V3:0"),
    ("the stop, read from a pipeline", "B P P P!"),
]:
    print(f"{meaning:31}  {codes:9}  {steps(codes):6.3f}")

print()
for meaning, codes, plain in [
    ("a phantom drain", "B P D S S B P P R", "B P P P P P P R"),
    ("an isolated verify that missed", "B P D V3:0 S S B P P R", "B P P P P P P P R"),
    ("the same, pausing the governor", "B P D V3:0 B P P R", "B P P P P P R"),
]:
    print(f"{meaning:31}  {codes:22}  {steps(codes) - steps(plain):+.3f}")
