"""What `tune` answers, whole: the question, what was found, and what the held-out requests say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies import Policy
from tuning.confirmation import Confirmation
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
    confirmation: Confirmation | None = None
    """What the engine said of it; None where nobody asked, nothing is recommended, or it failed."""
    failure: str | None = None
    """Why the engine could not be asked to the end, though somebody wanted it."""

    @property
    def policy(self) -> Policy:
        """The policy with the settings that were found."""
        return policy(self.inquiry.problem, self.found.candidate)

    @property
    def changes(self) -> Mapping[str, Value]:
        """The constants that are not the shipped ones."""
        return changes(self.inquiry.problem, self.found.candidate)

    @property
    def promising(self) -> bool:
        """Whether what was found should replace the shipped constants, as far as the model knows."""
        return self.found.feasible and bool(self.changes) and self.verdict.recommended

    @property
    def recommended(self) -> bool:
        """Whether what was found should replace the shipped constants, the engine agreeing if it was asked."""
        return self.promising and not self.failure and (self.confirmation is None or self.confirmation.holds)

    @property
    def reason(self) -> str:
        """Why it is recommended, or why not."""
        effect = self.verdict.effect
        interval = f"held out, {effect}"
        if not self.found.feasible:
            broken = self.found.candidate.score.broken
            return f"no settings that were tried keep the rules; the least bad break {broken}"
        if self.promising:
            if self.failure:
                return f"{interval}; not confirmed: {self.failure}"
            if self.confirmation is None:
                return interval
            said = "on the engine" if self.recommended else "the engine does not confirm it"
            return f"{interval}; {said}, {self.confirmation}"
        if not self.changes:
            why = "nothing that was tried is faster on the tuning split"
        elif effect.requests < FEWEST:
            why = f"too few to tell: {effect.said} held out, and at least {FEWEST} are needed; {interval}"
        elif not effect.gains:
            why = f"no gain outside noise; {interval}"
        else:
            why = f"a rule is broken more than the shipped constants break it; {interval}"
        broken = self.found.comparison.score("shipped").broken
        return f"{why}; the shipped constants break {broken} on the tuning split" if broken else why
