"""What a command line asks of `tune`, put together from files and options before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration import Profile
from policies import PolicyError
from simulator.serving.service import Service
from traces import Trace
from tuning.errors import TuningError
from tuning.problem import Problem, digest, widest_priced
from tuning.score import Rules
from tuning.space import space
from tuning.split import Split, split


@dataclass(frozen=True)
class Inquiry:
    """A question, and what was said to answer it with."""

    problem: Problem
    split: Split
    traces: tuple[Trace, ...]

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self.problem.shipped.name

    def digests(self, sampler: str, seed: int) -> dict[str, str]:
        """Return what a study that answers the question must have been made for, by part.

        The points of a grid are numbered in an order that the seed shuffles.
        """
        requests = (*self.split.tuning, *self.split.held_out)
        parts = [len(self.split.tuning), len(self.split.held_out)]
        others = {"cmaes": "penalised", "nsgaii": "two values", "grid": f"one value, points of seed {seed}"}
        objective = others.get(sampler, "one value")
        found = self.problem.digests(requests)
        return {**found, "traces": digest([found["traces"], *parts]), "objective": objective}

    def name(self, sampler: str, seed: int) -> str:
        """Return a name for the study, the same for the same question asked in the same way only."""
        return f"{self.policy}-{digest([self.digests(sampler, seed), sampler, seed])[:8]}"


def inquiry(
    policy: str,
    traces: Sequence[Trace],
    profiles: Sequence[Profile],
    rules: Rules,
    *,
    fixes: Sequence[str] = (),
    ranges: Sequence[str] = (),
    service: Service | None = None,
    interpolate_widths: bool = False,
) -> Inquiry:
    """Put a question together.

    Args:
        policy: its name.
        traces: what was said.
        profiles: the machines.
        rules: what counts and what may not be lost.
        fixes: settings that are not searched, as NAME=VALUE.
        ranges: narrower ranges, as NAME=LOW..HIGH or NAME=VALUE,VALUE.
        service: a server; None decodes one request at a time.
        interpolate_widths: whether widths between measured ones are filled in.

    Raises:
        PolicyError: no such policy or setting, or a value that does not fit it.
        TuningError: an empty split, nothing to search, or two profiles of one name.
        ProfileError: a profile that has no cost of a verify, or of plain decoding of what is held out.
    """
    names = [profile.name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise TuningError(f"profile {name!r} is named twice")
    widest = widest_priced(profiles, interpolate_widths=interpolate_widths)
    problem = Problem(space(policy, fixes, ranges, widest), tuple(profiles), rules, service, interpolate_widths)
    parts = split(traces)
    problem.check_weights(parts.tuning)
    try:
        problem.space.policy(problem.space.roomiest)
    except PolicyError as error:
        raise PolicyError(f"--fix: {error}") from None
    # What is held out is looked at after the search, and a prompt that nothing prices would be noticed only then.
    problem.evaluator(parts.held_out)
    return Inquiry(problem, parts, tuple(traces))
