"""The record of one tick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from simulator.serving.row import Row

Kind = Literal["prefill", "steady", "switch", "sync", "verify"]


class Verified(NamedTuple):
    """One verify round."""

    id: str
    width: int
    """Positions of its forward: the proposals and one."""
    accepted: int
    """Proposals that landed."""


class Worked(NamedTuple):
    """What the one action of a tick did."""

    kind: Kind
    """`steady` read the step in flight and submitted the next, `switch` read it and submitted nothing because a row
    proposed, `sync` stepped without a verify round, `verify` had at least one."""
    rows: tuple[str, ...]
    """Decoding rows in order of admission; in a prefill those prefilled."""
    asked: Mapping[str, int]
    """Tokens proposed by each row that was asked."""
    emitted: Mapping[str, int]
    """Tokens emitted by each of `rows`."""
    verify: tuple[Verified, ...] = ()


class Tick(NamedTuple):
    """One iteration of the scheduler that did something."""

    arrived: tuple[str, ...]
    """Requests taken in at its start."""
    worked: Worked
    primed: bool
    """Whether a step is in flight when it ends."""
    unwound: int
    """Uncommitted positions taken back from each row, not counting what a verify did not land."""
    released: tuple[Row, ...]
    """Rows that left."""

    def document(self) -> dict[str, Any]:
        """Return the record in JSON; its fields are a contract with other tools (docs/reference/commands.md)."""
        worked = self.worked
        return {
            "kind": worked.kind,
            "arrived": list(self.arrived),
            "rows": list(worked.rows),
            "asked": dict(worked.asked),
            "emitted": dict(worked.emitted),
            "verify": [one._asdict() for one in worked.verify],
            "primed": self.primed,
            "teardown": self.unwound,
            "ended": {row.id: row.end for row in self.released},
        }
