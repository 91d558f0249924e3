"""Does a break-even rule keep what copies gain and spare prose, on every machine, alone and on a server?

The rule is `gated`'s, its three constants tuned by a grid on the tuning part of the recorded suite; `breakeven`, whose
thresholds follow from the prices, stands beside it. Both are judged on what was held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from server_study import VERIFY, Assumed, gain, lone_row
from suite_study import MACHINES, Row, held_out_part, percent, short, tuning_part

import calibration
import policies
from calibration import Costs
from policies import Policy
from policies.gated import Gated
from simulator.oracle import Oracle
from simulator.report import table
from traces import Request
from tuning.evaluation import Alone, Speedups
from tuning.kinds import category, copies, is_prose
from tuning.score import mean

SERVED = ("gb10-qwen3-1.7b-4bit", "gb10-llama-3.1-8b-4bit")
"""The profiles with costs of a server."""
THRESHOLDS = (None, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0)
CONFIRMATIONS = (1, 2)
WAITS = (0, 2)
KEEP = 0.9
"""Share of what copies gain under `gated` as it is that has to be kept."""
LEAST = 0.99
"""What prose has to reach, all of it together."""
SHIPPED, DERIVED = Gated(), policies.load("breakeven")


@dataclass(frozen=True)
class Part:
    """Requests under many costs at once."""

    evaluator: Alone

    def prose(self, policy: Policy, place: int) -> float:
        """Return the geometric mean speedup of free prose under the costs of one place."""
        return self._mean(policy, place, [one for one, request in enumerate(self._requests) if is_prose(request)])

    def slowest(self, policy: Policy, place: int) -> float:
        """Return the speedup of the slowest request of free prose."""
        row = speedups(self.evaluator, policy)[place]
        return min(row[one] for one, request in enumerate(self._requests) if is_prose(request))

    def copying(self, policy: Policy, place: int) -> float:
        """Return the geometric mean speedup of what copies."""
        chosen = [one for one, request in enumerate(self._requests) if copies(category(request))]
        return self._mean(policy, place, chosen)

    @property
    def _requests(self) -> Sequence[Request]:
        return self.evaluator.requests

    def _mean(self, policy: Policy, place: int, chosen: Sequence[int]) -> float:
        return mean(speedups(self.evaluator, policy)[place], chosen)


@cache
def speedups(evaluator: Alone, policy: Policy) -> Speedups:
    """Return the speedups under all costs."""
    return evaluator.speedups(policy)


@cache
def costs() -> Mapping[str, Costs]:
    """Return the costs of every machine, and those of a lone row on the two servers."""
    alone = {short(name): calibration.load(name).costs() for name in MACHINES}
    return alone | {f"{short(name)}, server": lone_row(Assumed(profile=name)) for name in SERVED}


def main() -> None:
    """Print the study."""
    tuning, held_out = (Part(Alone(part(), list(costs().values()), 7)) for part in (tuning_part, held_out_part))
    chosen = [best(tuning, place) for place in range(len(costs()))]
    print(table(found(tuning, chosen)), table(judged(held_out, chosen)), sep="\n\n")
    print()
    print(table(served(dict(zip(costs(), chosen, strict=True)))))


def rules() -> Iterator[Gated]:
    """Yield every rule of the grid; without a threshold it never pauses, and nothing has to be confirmed more often."""
    for threshold, confirmations, wait in product(THRESHOLDS, CONFIRMATIONS, WAITS):
        yield Gated(min_tokens_per_round=threshold, resume_confirmations=confirmations, pipeline_after=wait)


def best(part: Part, place: int) -> Gated:
    """Return the rule that is best for prose among those that keep what copies gain."""
    owed = 1 + KEEP * (part.copying(SHIPPED, place) - 1)
    keeping = [rule for rule in rules() if part.copying(rule, place) >= owed]
    return max(keeping, key=lambda rule: part.prose(rule, place))


def found(part: Part, chosen: Sequence[Gated]) -> list[Row]:
    """Return the rule of every machine and what it does to the requests that it was tuned on."""
    rows: list[Row] = [
        ("tuned on", "tokens a round", "confirmations", "wait", "prose: gated", "rule", "copies: gated", "rule")
    ]
    for place, (name, rule) in enumerate(zip(costs(), chosen, strict=True)):
        threshold = "none" if rule.min_tokens_per_round is None else f"{rule.min_tokens_per_round:g}"
        constants = (threshold, str(rule.resume_confirmations), str(rule.pipeline_after))
        prose = [percent(part.prose(one, place) - 1, "+") for one in (SHIPPED, rule)]
        copied = [percent(part.copying(one, place) - 1, "+") for one in (SHIPPED, rule)]
        rows.append((name, *constants, *prose, *copied))
    return rows


def judged(part: Part, chosen: Sequence[Gated]) -> list[Row]:
    """Return what became of prose and copies that were held out."""
    rows: list[Row] = [
        (
            "held out",
            *("prose: gated", "rule", "breakeven", "oracle"),
            *("slowest: gated", "rule", "breakeven"),
            *("copies: gated", "rule", "breakeven", "oracle"),
            *("holds: rule", "breakeven"),
        )
    ]
    for place, (name, rule) in enumerate(zip(costs(), chosen, strict=True)):
        three: list[Policy] = [SHIPPED, rule, DERIVED]
        prose = [part.prose(one, place) for one in (*three, Oracle())]
        slowest = [part.slowest(one, place) for one in three]
        copied = [part.copying(one, place) for one in (*three, Oracle())]
        owed = 1 + KEEP * (copied[0] - 1)
        holds = ["yes" if prose[one] >= LEAST and copied[one] >= owed else "no" for one in (1, 2)]
        rows.append((name, *(percent(one - 1, "+") for one in (*prose, *slowest, *copied)), *holds))
    return rows


def served(rule: Mapping[str, Gated]) -> list[Row]:
    """Return what the server itself makes of it, one client, at both ends of what its verify may cost."""
    requests = held_out_part()
    prose = tuple(one for one in requests if is_prose(one))
    copied = tuple(one for one in requests if copies(category(one)))
    rows: list[Row] = [
        ("served, held out", "verify x", "prose: gated", "rule", "breakeven", "copies: gated", "rule", "breakeven")
    ]
    for profile in SERVED:
        name = f"{short(profile)}, server"
        for factor in VERIFY:
            end = Assumed(factor, profile=profile)
            three = (SHIPPED, rule[name], DERIVED)
            cells = [percent(gain(part, one, end), "+") for part in (prose, copied) for one in three]
            rows.append((name, f"{factor:g}", *cells))
    return rows


if __name__ == "__main__":
    main()
