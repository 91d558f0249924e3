"""How many generated tokens a second are replayed and priced on one core; run by `make bench`.

Seconds are those of the processor, since the machine may be shared. The basic suite is repeated until its replies hold
200,000 generated tokens. Three ways stand side by side, interleaved
round by round so that a busy machine slows all alike: replay over a match table that is there already, replay that
makes the table first, and the straightforward way, an n-gram index that reads the context anew for every request.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import calibration
import policies
import traces
from calibration import suites
from policies import LookupPolicy
from simulator.recorded import Recording
from simulator.two_clocks import TwoClocks
from tests.live import live

TOKENS = 200_000
ROUNDS = 5

Way = Callable[[Recording], object]


def ways(policy: LookupPolicy, clocks: TwoClocks) -> dict[str, Way]:
    """Return what is measured by name; each takes a recording whose table is made."""

    def replay(recording: Recording) -> float:
        events = recording.schedule(policy, clocks.costs).events
        return clocks.decode_s(events, recording.prompt_tokens)

    def rescan(recording: Recording) -> float:
        events = live(recording, policy, clocks.costs, pipelined=True).events
        return clocks.decode_s(events, recording.prompt_tokens)

    return {
        "table excluded": replay,
        "table included": lambda recording: replay(Recording(recording.request)),
        "index, no table": rescan,
    }


def main() -> None:
    """Measure and print."""
    basic = sorted(prompt.id for prompt in suites.load("basic").prompts)
    requests = [request for name in basic for request in traces.load(name).requests]
    generated = sum(len(request.reply) for request in requests)
    repeats = -(-TOKENS // generated)
    clocks = TwoClocks(calibration.load("gb10-qwen3-8b-4bit").costs())
    print(f"{len(requests)} requests, {generated} generated tokens, {repeats} times over; one core, {ROUNDS} rounds")
    print(f"{'policy':8}{'':18}{'tokens/s, median':>18}{'lowest':>12}{'highest':>12}")
    for name in ("graded", "gated"):
        policy = policies.load(name)
        assert isinstance(policy, LookupPolicy)
        recordings = [Recording(request) for request in requests]
        for recording in recordings:
            recording.lookup(policy)
        measured: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for way, act in ways(policy, clocks).items():
                started = time.process_time()
                for _ in range(repeats):
                    for recording in recordings:
                        act(recording)
                measured.setdefault(way, []).append(generated * repeats / (time.process_time() - started))
        for way, rates in measured.items():
            print(f"{name:8}{way:18}{statistics.median(rates):18,.0f}{min(rates):12,.0f}{max(rates):12,.0f}")


if __name__ == "__main__":
    main()
