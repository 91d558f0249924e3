"""Every request of a trace under every policy, in one pass that keeps what a report needs and lets the rest go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies import Policy
from simulator.against import Comparison, compare
from simulator.recorded import Recording
from simulator.records import Record, record, total
from simulator.run import Run, Spent
from simulator.simulation import simulate
from simulator.two_clocks import TwoClocks
from traces import Request
from traces.mlxcel_log import LoggedRun


@dataclass(slots=True)
class Result:
    """One policy on one trace."""

    policy: Policy
    trace: str
    """The name of a shipped trace, or the path as typed."""
    header: Mapping[str, Any]
    """What the trace says of itself."""
    records: list[Record] = field(default_factory=list)
    """One a request, in trace order."""
    spent: dict[str, Spent] = field(default_factory=dict)
    """Decode time by kind of round, summed over requests; empty unless asked for."""
    comparisons: list[Comparison] = field(default_factory=list)
    """One a request that the engine has logged too."""

    def add(self, run: Run, *, events: bool = False, spent: bool = False, logged: LoggedRun | None = None) -> None:
        """Take in the run of one more request.

        Args:
            run: what came out.
            events: keep its event codes.
            spent: keep where its time went.
            logged: the engine's run of the same request, to compare with.
        """
        self.records.append(record(run, events=events))
        if logged:
            comparison = compare(run, logged)
            self.comparisons.append(comparison)
            self.records[-1]["against"] = comparison.document()
        for part in run.spent if spent else ():
            known = self.spent.get(part.kind, Spent(part.kind, 0, 0.0))
            self.spent[part.kind] = Spent(part.kind, known.rounds + part.rounds, known.seconds + part.seconds)

    @property
    def total(self) -> Record:
        """The sums over requests, with the rates and speedups of the sums."""
        return total(self.records)

    def to_frame(self) -> Any:
        """Return the records as a pandas.DataFrame, a row a request; pandas is imported only here."""
        import pandas as pd

        return pd.DataFrame(self.records)

    def document(self, profile: str, notes: Sequence[str]) -> Record:
        """Return the JSON document; its fields are a contract with other tools (docs/reference/commands.md)."""
        return {
            "policy": {"name": self.policy.name, "settings": self.policy.settings},
            "profile": profile,
            "trace": self.trace,
            "requests": self.records,
            "total": self.total,
            "notes": list(notes),
        }


def side_by_side(
    requests: Iterable[Request], policies: Sequence[Policy], clocks: TwoClocks, *, sync: bool = False
) -> Iterator[list[Run]]:
    """Yield, request by request, its runs under every policy; the match tables are shared.

    Raises:
        ProfileError: when a forward's width or context is outside what the costs stand for.
    """
    for request in requests:
        recording = Recording(request)
        yield [simulate(recording, policy, clocks, sync=sync) for policy in policies]
