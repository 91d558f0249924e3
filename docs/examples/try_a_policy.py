"""A policy of one's own beside the shipped ones, before its file is moved into `policies/`."""

from __future__ import annotations

from new_policy.doubling import Doubling

import calibration
import policies
import traces
from simulator import Oracle, run

costs = calibration.load("gb10-qwen3-8b-4bit").costs()
chosen = [Doubling(), Doubling(first=1), policies.load("graded"), policies.load("gated"), Oracle()]

print("trace    ", *(f"{policy!s:>16}" for policy in chosen))
for name in ("copy", "edit_code", "story"):
    speedups = [run(request, policy, costs).speedup for request in traces.load(name).requests for policy in chosen]
    print(f"{name:9}", *(f"{speedup:16.3f}" for speedup in speedups))
