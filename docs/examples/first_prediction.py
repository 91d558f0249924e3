"""One recorded reply, one policy, one machine: what `simulate` does, from Python."""

from __future__ import annotations

import calibration
import policies
import traces
from simulator import run

trace = traces.load("story")
policy = policies.load("gated")
costs = calibration.load("gb10-qwen3-8b-4bit").costs()

for request in trace.requests:
    result = run(request, policy, costs)
    schedule = result.schedule
    print(f"{request.id}: {result.generated} tokens in {result.total_s:.3f} s, plain {result.plain_total_s:.3f} s")
    print(f"{schedule.drafted_rounds} of {schedule.rounds} rounds proposed, {schedule.accepted} tokens landed")
    print(f"{result.speedup:.4f} times plain decoding")

    rounds = result.to_frame()
    print()
    print(rounds.head(8).to_string(float_format="%.6f"))
    print()
    print(rounds.groupby("kind")["duration_s"].agg(["count", "sum"]).to_string(float_format="%.6f"))
