"""Plain decoding, the shipped constants, what was found and the oracle's bound, on the same requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies import LookupPolicy, Policy
from simulator.oracle import Oracle
from tuning.evaluation import Evaluator, Speedups
from tuning.score import Judge, Score, mean


@dataclass(frozen=True)
class Comparison:
    """One part of the requests under several policies."""

    judge: Judge
    speedups: Mapping[str, Speedups]
    """By column: `shipped`, `found`, `oracle` with the shipped lookup, `oracle, found lookup` where that differs."""

    def score(self, column: str) -> Score:
        """Return what a column is worth."""
        return self.judge.score(self.speedups[column])

    def overall(self, machine: int) -> dict[str, float]:
        """Return each column's objective on one machine."""
        return {name: self.judge.machine(rows[machine]) for name, rows in self.speedups.items()}

    def category(self, name: str, machine: int) -> dict[str, float]:
        """Return each column's speedup in one category on one machine."""
        places = self.judge.categories[name]
        return {column: mean(rows[machine], places) for column, rows in self.speedups.items()}

    def worst_prose(self, machine: int) -> dict[str, float] | None:
        """Return each column's slowest request of free prose on one machine; None without any."""
        if not self.judge.prose:
            return None
        return {
            column: min(rows[machine][place] for place in self.judge.prose) for column, rows in self.speedups.items()
        }


def compare(evaluator: Evaluator, judge: Judge, found: Policy, shipped: Policy, *, bounded: bool) -> Comparison:
    """Compare policies on the requests of an evaluator.

    Args:
        evaluator: says how fast they are.
        judge: of the same requests.
        found: what the search found.
        shipped: the policy's shipped constants.
        bounded: whether there is an oracle; a server has none.

    Raises:
        ProfileError: a forward that a profile has no cost of.
    """
    columns = {"shipped": judge.shipped, "found": evaluator.speedups(found)}
    if bounded and isinstance(shipped, LookupPolicy) and isinstance(found, LookupPolicy):
        bound, other = oracle(shipped), oracle(found)
        columns["oracle"] = evaluator.speedups(bound)
        if other != bound:
            columns["oracle, found lookup"] = evaluator.speedups(other)
    return Comparison(judge, columns)


def oracle(policy: LookupPolicy) -> Oracle:
    """Return the bound of every policy with this one's lookup."""
    return Oracle(
        ngram_max=policy.ngram_max, ngram_min=policy.ngram_min, max_draft=policy.max_draft, match=policy.match
    )
