"""What a user can get wrong about costs."""

from __future__ import annotations


class ProfileError(ValueError):
    """A profile, or a cost asked of one, that cannot be used."""
