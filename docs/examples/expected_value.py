"""What expected_value assumes of a match, what it makes of that on a GB10, and how it fares on recordings."""

from __future__ import annotations

from collections import Counter
from math import prod

import calibration
import policies
import traces
from policies import Match, Policy, State, match_table
from policies.expected_value import ExpectedValue
from simulator import Oracle
from simulator.recorded import Recording
from simulator.report import table
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks

COSTS = calibration.load("gb10-qwen3-1.7b-4bit").costs()
CLOCKS = TwoClocks(COSTS)
POLICY = ExpectedValue()
RECORDINGS = {
    name: Recording(traces.load(name).requests[0])
    for name in ("copy", "long_copy", "edit_code", "edit_json", "summary", "chat", "story", "email")
}
LENGTHS = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def assumed(length: float) -> float:
    """Return the chance that the token behind a match of that length comes true, before a row is known."""
    odds = (length / POLICY.even_at) ** POLICY.growth
    return odds / (1 + odds)


def seen() -> tuple[Counter[int], Counter[int]]:
    """Return, by length, how often something was found in the recordings, and how often its first token came true."""
    found, true = Counter[int](), Counter[int]()
    for recording in RECORDINGS.values():
        request = recording.request
        answers = match_table(request.prompt, request.reply, ngram_max=POLICY.ngram_max)
        length = 0
        for tokens, landed, suffix in zip(answers.tokens, answers.true_tokens, answers.length, strict=True):
            goes_on = length and suffix >= min(length + 1, POLICY.ngram_max)
            length = int(length + 1 if goes_on else suffix) if tokens else 0
            if tokens:
                found[length] += 1
                true[length] += bool(landed)
    return found, true


def proposed(length: int, in_flight: bool) -> int:
    """Return how many of seven tokens are proposed behind a match of that length, in a row that is not known yet."""
    governor = policies.load(f"expected_value:ngram_max={min(length, 16)}").governor(COSTS)
    context = 300
    for suffix in range(16, length):
        governor.choose(State(1000, context + suffix, True, 9, 1), Match(7, 16))
    return governor.choose(State(1000, context + length, in_flight, 9, 1), Match(7, min(length, 16)))


def speedup(recording: Recording, policy: Policy) -> float:
    """Return how many times as fast as plain decoding a reply comes, its prompt not counted."""
    run = simulate(recording, policy, CLOCKS)
    return run.plain_decode_s / run.decode_s


def mean(policy: Policy) -> float:
    """Return the geometric mean over the recordings."""
    return prod(speedup(recording, policy) for recording in RECORDINGS.values()) ** (1 / len(RECORDINGS))


def main() -> None:
    """Print what is assumed beside what was seen, what is proposed, and what comes of it."""
    found, true = seen()
    rows = [("length of the match", "found", "came true", "assumed", "proposed", "in flight")]
    for low, high in zip(LENGTHS, (*LENGTHS[1:], 10**9), strict=True):
        lengths = [length for length in found if low <= length < high]
        count = sum(found[length] for length in lengths)
        came, thought = (
            sum(true[length] for length in lengths) / count,
            sum(found[length] * assumed(length) for length in lengths) / count,
        )
        title = f"{low} and more" if low == LENGTHS[-1] else str(low) if high == low + 1 else f"{low} to {high - 1}"
        pays = "drained" if proposed(low, True) else "no"
        rows.append((title, str(count), f"{came:.2f}", f"{thought:.2f}", str(proposed(low, False)), pays))
    print(table(rows))
    print()
    chosen = [*map(policies.load, ("gated", "breakeven", "expected_value")), Oracle()]
    rows = [("recording", *(policy.name for policy in chosen))]
    rows += [
        (name, *(f"{speedup(recording, policy):.3f}" for policy in chosen)) for name, recording in RECORDINGS.items()
    ]
    means = [mean(policy) for policy in chosen]
    rows.append(("geometric mean", *(f"{value:.3f}" for value in means)))
    rows.append(("of the oracle's gain", *(f"{(value - 1) / (means[-1] - 1) * 100:.0f} %" for value in means)))
    print(table(rows))
    print()
    rows = [("geometric mean with", "less", "default", "more")]
    for name, less, more in (
        ("even_at", 2.0, 2.8),
        ("growth", 0.8, 1.0),
        ("surprise", 0.0, 0.06),
        ("ngram_max", 3, 16),
    ):
        near = (policies.load("expected_value", {name: f"{value:g}"}) for value in (less, more))
        low, high = (f"{mean(policy):.3f}" for policy in near)
        rows.append((f"{name} {less:g}, {POLICY.settings[name]:g}, {more:g}", low, f"{means[2]:.3f}", high))
    print(table(rows))


if __name__ == "__main__":
    main()
