"""What a forward costs: profiles, and everything that touches a machine."""

from __future__ import annotations

from calibration.costs import Costs
from calibration.errors import ProfileError
from calibration.profile import Profile
from calibration.profile_file import DEFAULT_PROFILE, load, names, shipped
from calibration.row_prices import RowPrices
from calibration.server_costs import ServerCosts

__all__ = [
    "DEFAULT_PROFILE",
    "Costs",
    "Profile",
    "ProfileError",
    "RowPrices",
    "ServerCosts",
    "load",
    "names",
    "shipped",
]
