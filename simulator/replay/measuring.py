"""What an engine has to pass before anything is measured, and measuring until it is done or somebody interrupts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration import Profile, checkpoints, this_machine
from calibration.engine import Engine
from calibration.progress import counted
from simulator import console
from simulator.replay import matching
from simulator.replay.errors import ReplayError
from simulator.replay.session import Session, Setup, measure


@dataclass(frozen=True)
class Checks:
    """What an engine has to pass before anything is measured."""

    headers: Sequence[Mapping[str, Any]]
    """Of the traces."""
    setup: Setup
    profile: Profile
    allow_mismatch: bool

    def open(self) -> Engine:
        """Open the engine and check it.

        Raises:
            EngineError: it cannot be opened.
            ReplayError: it does not belong to a trace or the profile.
        """
        engine = checkpoints.open_engine(self.setup.model, self.setup.dtype)
        found = engine.provenance()
        matching.check_tokens(self.setup.requests, engine)
        machine = this_machine.machine()
        wrong: list[str] = []
        noted: list[str] = []
        for header in self.headers:
            wrong += matching.mismatches(header, found, self.profile, machine)
            noted += matching.other_dtypes(header, found, self.profile)
        if self.setup.mode == "free":
            wrong += noted
        if wrong and not self.allow_mismatch:
            raise ReplayError(f"{wrong[0]}; --allow-mismatch replays it anyway")
        if blas := matching.other_blas(self.profile, this_machine.blas()):
            noted.append(blas)
        for line in dict.fromkeys([*wrong, *noted]):
            console.note(line)
        return engine


def finished(session: Session, checks: Checks) -> bool:
    """Measure what is missing and return whether nobody interrupted.

    Raises:
        EngineError: the engine cannot be opened, or takes no such context.
        ReplayError: interrupted before one repeat of any request was complete, or the engine does not pass.
    """
    try:
        with counted(session.left, "measuring") as done:
            measure(session, checks.open, done)
    except KeyboardInterrupt:
        if not session.repeats:
            raise ReplayError("interrupted before every run was measured once; with --save it goes on") from None
        return False
    return True
