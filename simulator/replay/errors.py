"""What a user can get wrong about a replay."""

from __future__ import annotations


class ReplayError(ValueError):
    """A replay that cannot be run, saved or resumed, said in one line."""
