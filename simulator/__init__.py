"""Where trace, policy and profile meet: the decode loop, its two clocks, and the results."""

from __future__ import annotations

from simulator.oracle import Oracle
from simulator.results import Result, side_by_side
from simulator.run import Round, Run, Spent
from simulator.schedule import Event, Schedule
from simulator.simulation import run

__all__ = ["Event", "Oracle", "Result", "Round", "Run", "Schedule", "Spent", "run", "side_by_side"]
