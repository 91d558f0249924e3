"""What breakeven's thresholds come to on a machine: chances from which a proposal pays, and proofs that end a pause."""

from __future__ import annotations

from collections.abc import Callable

import calibration
from calibration import RowPrices
from policies import Governor, Match, Prices, State
from policies.breakeven import Breakeven

CONTEXT = 300
POLICY = Breakeven()
INTERRUPTED = POLICY.pipeline_after + 1
"""Overlaps that an isolated verify loses."""


def profit(prices: Prices, proposed: int, chance: float, lost: int) -> float:
    """Return what a proposal of so many tokens earns beyond plain decoding, in steps, if each lands with a chance."""
    emitted = sum(chance**landed for landed in range(proposed + 1))
    overlap_s = prices.overlap_s(CONTEXT)
    token_s = prices.sync_s(1, CONTEXT) - overlap_s
    return emitted - (prices.sync_s(proposed + 1, CONTEXT) + lost * overlap_s) / token_s


def pays_from(prices: Prices, proposed: int, lost: int) -> str:
    """Return the chance from which it pays."""
    if profit(prices, proposed, 1.0, lost) <= 0:
        return "never"
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if profit(prices, proposed, middle, lost) <= 0 else (low, middle)
    return f"{high:.2f}"


def best(prices: Prices, chance: float, lost: int) -> int:
    """Return how many tokens pay most; 0 for none."""
    return max(range(8), key=lambda proposed: profit(prices, proposed, chance, lost) if proposed else 0.0)


def state(in_flight: bool, rows: int) -> State:
    """Return what a governor sees at this page's context."""
    return State(remaining=1000, context=CONTEXT + 1, in_flight=in_flight, plain_streak=9 * in_flight, rows=rows)


def until(governor: Governor, event: Callable[[], None], paused: bool, rows: int) -> str:
    """Return after how many such events it is paused or not."""
    for count in range(1, 100):
        event()
        governor.budget(state(True, rows))
        if governor.paused == paused:
            return str(count)
    return "never"


def proofs(prices: Prices, rows: int) -> tuple[str, str]:
    """Return how many true probes begin drafting, and how many misses in a row then end it."""
    governor = POLICY.governor(prices)
    resumed = until(governor, governor.confirm, False, rows)
    if resumed == "never":
        return resumed, ""

    def miss() -> None:
        governor.choose(state(False, rows), Match(7, 3))
        governor.record(0)

    return resumed, until(governor, miss, True, rows)


def published() -> list[str]:
    """Return the profiles of published figures; what `calibrate` has measured says where it comes from."""
    return [name for name in calibration.names() if calibration.load(name).provenance is None]


def main() -> None:
    """Print one machine in full, and then what the rules come to on every other and on a server."""
    costs = calibration.load("gb10-qwen3-1.7b-4bit").costs()
    print("tokens  pays back to back  pausing  isolated")
    for proposed in range(1, 8):
        chances = [pays_from(costs, proposed, lost) for lost in (0, 1, INTERRUPTED)]
        print(f"{proposed:6}  {chances[0]:>17}  {chances[1]:>7}  {chances[2]:>8}")
    print()
    print("chance  tokens back to back  in flight")
    for chance in (0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
        print(f"{chance:6}  {best(costs, chance, 0):19}  {best(costs, chance, INTERRUPTED):9}")
    print()
    print(f"{'machine':30}  lost overlap, steps  probes that resume  misses that pause")
    for name in published():
        profile = calibration.load(name)
        one = profile.costs(interpolate_widths=True)
        show(name, one, 1)
        if profile.serving.paged:
            for rows in (1, 2):
                row = RowPrices(profile.server_costs(one, "paged")).among(rows)
                show(f"  paged, {rows} row{'s' * (rows > 1)}", row, rows)


def show(name: str, prices: Prices, rows: int) -> None:
    """Print what the rules come to at these prices."""
    resumed, paused = proofs(prices, rows)
    lost = prices.overlap_s(CONTEXT) / prices.step_s(CONTEXT)
    print(f"{name:30}  {lost:19.2f}  {resumed:>18}  {paused:>17}".rstrip())


if __name__ == "__main__":
    main()
