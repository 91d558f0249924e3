"""What a file of another program does not say, and the profile that it comes to with that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.cost_table import CostTable
from calibration.prefill import Prefill
from calibration.profile import Profile
from calibration.provenance import Machine

NO_PROMPTS = Prefill(0.0, 0.0, "not known: the printout has none, so it counts as 0")


@dataclass(frozen=True)
class About:
    """What the file does not say and the user has to."""

    name: str
    model: str
    dtype: str
    chip: str
    measured: str

    def profile(
        self, engine: str, source: str, table: CostTable, prefill: Prefill, notes: Sequence[str] = ()
    ) -> Profile:
        """Return the profile that a table comes to.

        Raises:
            ProfileError: the table contradicts itself, or a word is none that a profile has.
        """
        settled, said = table.settled()
        return Profile(
            name=self.name,
            machine=Machine(chip=self.chip),
            engine=engine,
            model=self.model,
            dtype=self.dtype,
            measured=self.measured,
            source=source,
            bound="device",
            cost=settled,
            prefill=prefill,
            notes=(*notes, *said),
        )
