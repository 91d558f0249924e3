"""What an engine has to pass before anything is measured, and measuring until it is done or something stops it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration import Profile, checkpoints
from calibration.engine import Engine, EngineError
from calibration.profile import UNKNOWN
from calibration.progress import counted
from calibration.resources import enough_memory
from simulator.replay import matching
from simulator.replay.errors import ReplayError, StoppedError
from simulator.replay.session import Session, Setup, measure, said_by

INTERRUPTED = "interrupted"


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
        matching.check_tokens(self.setup.requests, engine)
        self.notes(said_by(engine))
        return engine

    def notes(self, engine: Mapping[str, Any]) -> list[str]:
        """Return what a report must say of trace, profile and an engine that is open, or was in an earlier session.

        Args:
            engine: what it says of itself and its machine.

        Raises:
            ReplayError: they do not belong together, and nobody allowed it.
        """
        wrong: list[str] = []
        noted: list[str] = []
        for header in self.headers:
            wrong += matching.mismatches(header, engine, self.profile)
            noted += matching.other_dtypes(header, engine, self.profile)
        if self.setup.mode == "free":
            wrong += noted
        if wrong and not self.allow_mismatch:
            raise ReplayError(f"{wrong[0]}; --allow-mismatch replays it anyway")
        noted += matching.other_blas(self.profile, engine.get("blas", UNKNOWN))
        return list(dict.fromkeys([*wrong, *noted]))


def finished(session: Session, checks: Checks) -> str | None:
    """Measure what is missing; return what stopped it, None when nothing did.

    Raises:
        EngineError: the engine cannot be opened, or takes no such context.
        ReplayError: stopped before one repeat of any request was complete, or the engine does not pass.
    """
    try:
        with counted(session.left, "measuring") as done, enough_memory():
            measure(session, checks.open, done)
    except KeyboardInterrupt:
        if not session.repeats:
            raise ReplayError("interrupted before every run was measured once; with --save it goes on") from None
        return INTERRUPTED
    except (EngineError, ReplayError) as error:
        # Whoever is refused is told no more; but what stops on the way, or where nothing but comparing is left, is not.
        refused = session.left > 0 and not isinstance(error, StoppedError)
        if refused or not session.repeats:
            raise
        return str(error)
    return None
