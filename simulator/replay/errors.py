"""What a user can get wrong about a replay, and what stops one."""

from __future__ import annotations


class ReplayError(ValueError):
    """A replay that cannot be run, saved or resumed, said in one line."""


class StoppedError(ReplayError):
    """A replay that had begun and did not come to its end; what it measured can be reported."""
