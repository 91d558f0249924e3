"""What every test stands on: properties that draw the same examples in every run."""

from __future__ import annotations

from hypothesis import settings

# A slow, shared machine is no failure (no deadline), and a red run can be run again as it was (derandomized).
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
