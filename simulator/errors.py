"""What a user can get wrong about a simulation."""

from __future__ import annotations


class SimulationError(ValueError):
    """A simulation that cannot be run as asked."""
