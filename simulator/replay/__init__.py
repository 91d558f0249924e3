"""Run a policy on a real engine and hold the prediction against it."""

from __future__ import annotations

from simulator.replay.errors import ReplayError
from simulator.replay.execution import Execution, Reply
from simulator.replay.session import Session, Setup, measure

__all__ = ["Execution", "ReplayError", "Reply", "Session", "Setup", "measure"]
