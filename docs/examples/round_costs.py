"""What a round costs, in milliseconds and in pipelined steps, and how many tokens it must emit to pay."""

from __future__ import annotations

import calibration

CONTEXT = 300

for name in ("gb10-qwen3-1.7b-4bit", "gb10-qwen3-8b-4bit"):
    costs = calibration.load(name).costs()
    step_s = costs.step_s(CONTEXT)
    lost = costs.overlap_s(CONTEXT) / step_s
    print(f"{name}: a pipelined step takes {step_s * 1000:.3f} ms, a lost overlap costs {lost:.3f} steps")
    print("width      ms  steps  tokens to pay back to back  pausing  isolated")
    for width in costs.widths:
        seconds = costs.sync_s(width, CONTEXT)
        steps = seconds / step_s
        pays = f"{steps:26.2f}  {steps + lost:7.2f}  {steps + 3 * lost:8.2f}" if width > 1 else ""
        print(f"{width:5}  {seconds * 1000:6.2f}  {steps:5.2f}  {pays}".rstrip())
    print()
