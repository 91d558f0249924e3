"""Running a recommendation on the real engine, over what was held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from calibration import Profile, checkpoints, this_machine
from simulator import console
from simulator.replay import matching
from simulator.replay.errors import ReplayError
from simulator.replay.measuring import Checks, finished
from simulator.replay.session import Session, Setup
from simulator.replay.store import Store
from traces import Request
from tuning.answer import Answer
from tuning.confirm_options import CONFIRMING
from tuning.confirmation import Confirmation, confirmation
from tuning.errors import TuningError
from tuning.inquiry import Inquiry


@dataclass(frozen=True)
class Plan:
    """How a recommendation is to be confirmed, checked before anything is searched."""

    model: str
    dtype: str | None
    rounds: int
    tokens: int | None
    save: Path | None
    allow_mismatch: bool
    profile: Profile
    """What is predicted by."""
    requests: tuple[Request, ...]

    def run(self, answer: Answer) -> Confirmation:
        """Run what was found, the shipped constants and plain decoding over the requests.

        Raises:
            EngineError: the engine cannot be opened, or takes no such context.
            ReplayError: it does not belong to a trace or the profile, or somebody interrupted.
            ProfileError: a forward that the profile has no cost of.
        """
        problem, traces = answer.inquiry.problem, answer.inquiry.traces
        setup = Setup(
            trace=", ".join(trace.source for trace in traces),
            model=self.model,
            dtype=self.dtype,
            requests=self.requests,
            policies=(problem.shipped, answer.policy),
            costs=self.profile.costs(interpolate_widths=problem.interpolate_widths),
            repeats=self.rounds,
            seed=answer.task.seed,
        )
        session = Session(setup, Store(self.save))
        checks = Checks([trace.header for trace in traces], setup, self.profile, self.allow_mismatch)
        if stopped := finished(session, checks):
            raise ReplayError(f"{stopped}: {session.left} runs are missing; what --save keeps is gone on with")
        for line in checks.notes(session.engine):
            console.note(line)
        return confirmation(session, answer.policy, problem.shipped, problem.rules, self.tokens)


def plan(inquiry: Inquiry, options: Mapping[str, Any]) -> Plan | None:
    """Return how to confirm what a question will be answered with; None where nobody asked for it.

    Args:
        inquiry: the question.
        options: the values of `confirm_options.CONFIRMING`.

    Raises:
        click.UsageError: options that do not go together.
        EngineError: the directory of the model is none, or is incomplete.
        TuningError: two held-out requests of one name, or no profile of this machine.
    """
    rounds = options["rounds"]
    if rounds is None:
        for name in CONFIRMING[1:]:
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --confirm")
        return None
    if options["model"] is None:
        raise click.UsageError("--confirm needs --model")
    problem = inquiry.problem
    if problem.service is not None:
        raise click.UsageError("--confirm and --serve: the engine decodes one request at a time")
    names = [request.id for request in inquiry.split.held_out]
    for name in names:
        if names.count(name) > 1:
            raise TuningError(f"--confirm: two held-out requests are called {name!r}")
    checkpoints.check(options["model"])
    requests = tuple(matching.first_tokens(one, options["tokens"]) for one in inquiry.split.held_out)
    dtype = checkpoints.loaded_dtype(options["model"], options["dtype"])
    profile = profile_of(problem.profiles, dtype, allow_mismatch=options["allow_mismatch"])
    return Plan(**options, profile=profile, requests=requests)


def profile_of(profiles: Sequence[Profile], dtype: str, *, allow_mismatch: bool) -> Profile:
    """Return the profile that an engine of a dtype is held against: of this machine, and of that dtype if one is.

    Raises:
        TuningError: none is of this machine, and another one is not allowed.
    """
    chip = this_machine.machine().chip
    here = [profile for profile in profiles if profile.machine.chip == chip]
    if not here and not allow_mismatch:
        raise TuningError(f"--confirm: none of the profiles is of this machine ({chip!r}); --allow-mismatch takes any")
    alike = [profile for profile in here if matching.same_dtype(profile.dtype, dtype)]
    return [*alike, *here, *profiles][0]
