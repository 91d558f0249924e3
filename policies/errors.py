"""What a user of `policies` can get wrong."""

from __future__ import annotations


class PolicyError(ValueError):
    """A policy that does not exist, or a setting that it does not have or cannot take."""
