"""What a user can get wrong about a search."""

from __future__ import annotations


class TuningError(ValueError):
    """A search that cannot be run as asked."""
