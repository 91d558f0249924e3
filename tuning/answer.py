"""What `tune` answers, whole: the question, what was found, and what the held-out requests say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies import Policy
from tuning.dimension import Value
from tuning.effect import FEWEST
from tuning.inquiry import Inquiry
from tuning.search import Found, Verdict, changes, policy
from tuning.worker import Work


@dataclass(frozen=True)
class Answer:
    """The whole of it."""

    inquiry: Inquiry
    task: Work
    found: Found
    verdict: Verdict

    @property
    def policy(self) -> Policy:
        """The policy with the settings that were found."""
        return policy(self.inquiry.problem, self.found.candidate)

    @property
    def changes(self) -> Mapping[str, Value]:
        """The constants that are not the shipped ones."""
        return changes(self.inquiry.problem, self.found.candidate)

    @property
    def recommended(self) -> bool:
        """Whether what was found should replace the shipped constants."""
        return self.found.feasible and bool(self.changes) and self.verdict.recommended

    @property
    def reason(self) -> str:
        """Why it is recommended, or why not."""
        score, effect = self.found.candidate.score, self.verdict.effect
        interval = f"held out, {effect}"
        if not self.found.feasible:
            broken = ", ".join(f"{name} by {amount:.3f}" for name, amount in score.violations.items() if amount > 0)
            return f"no settings that were tried keep the rules; the least bad break {broken}"
        if not self.changes:
            return "nothing that was tried is faster on the tuning split"
        if effect.requests < FEWEST:
            return f"{effect.requests} held-out requests are too few to tell (at least {FEWEST}); {interval}"
        if not effect.gains:
            return f"the gain is within noise: {interval}"
        if not self.verdict.keeps_rules:
            return f"a rule that the shipped constants keep is broken on the held-out requests; {interval}"
        return interval
