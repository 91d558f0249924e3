"""Recordings out of the files of other programs: nothing is run, what was said is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import traces
from calibration.local_tokenizer import LocalTokenizer
from calibration.recording import Recorded
from traces import Request, TraceError
from traces.importing import arrivals
from traces.importing.exchange import Exchange, by_arrival, request
from traces.importing.formats import ARRIVALS, EXCHANGES, PAIRS
from traces.importing.two_columns import COLUMNS
from traces.mlxcel_log import read_logs

LOGS = "mlxcel-log"
SOURCES = (LOGS, *PAIRS, *EXCHANGES, *ARRIVALS)
"""What `record` can read instead of asking a model."""


@dataclass(frozen=True)
class Import:
    """What `record --from` was given."""

    source: str
    """One of `SOURCES`."""
    files: Sequence[str]
    model: str = ""
    """What the trace shall call the model; arrivals go to a trace that says so itself."""
    max_tokens: int | None = None
    """The limit that the replies were given, in tokens."""
    tokenizer: str | None = None
    """The directory of the model's tokenizer."""
    columns: tuple[str, str] = COLUMNS
    """What the prompts' and the responses' column are called, where there are columns."""
    trace: str = ""
    """Whose requests get the arrivals, where there are only those."""

    def read(self) -> tuple[dict[str, object], Recorded]:
        """Return the header and the requests of the trace that the files make.

        Raises:
            TraceError: a file cannot be read or is not what it should be, or two requests have one id.
            EngineError: there is no such tokenizer.
        """
        if self.source in ARRIVALS:
            return self._arrivals()
        header: dict[str, object] = {"model": self.model, **self._origin()}
        if self.source == LOGS:
            return header, _recorded([run.request(self.max_tokens) for run in read_logs(self.files)])
        tokenizer = LocalTokenizer(self.tokenizer) if self.tokenizer else None
        exchanges = by_arrival(self._exchanges())
        requests = [request(exchange, tokenizer, self.max_tokens) for exchange in exchanges]
        silent = [exchange.id for exchange, one in zip(exchanges, requests, strict=True) if one is None]
        header |= tokenizer.provenance() if tokenizer else {}
        return header, _recorded([one for one in requests if one], silent)

    def _exchanges(self) -> list[Exchange]:
        found: dict[str, Exchange] = {}
        for file in self.files:
            read = PAIRS[self.source](file, self.columns) if self.source in PAIRS else EXCHANGES[self.source](file)
            for exchange in read:
                if exchange.id in found:
                    raise TraceError(
                        f"{exchange.where}: a request's id is its file's stem and a number, and {exchange.id!r} is "
                        f"taken by {found[exchange.id].where}; rename one of the files"
                    )
                found[exchange.id] = exchange
        return list(found.values())

    def _arrivals(self) -> tuple[dict[str, object], Recorded]:
        trace = traces.load(self.trace)
        header = {key: value for key, value in trace.header.items() if key != "format"}
        at_s = [moment_s for file in self.files for moment_s in ARRIVALS[self.source](file)]
        return {**header, "arrivals": self._origin()}, _recorded(list(arrivals.given(at_s, trace.requests)))

    def _origin(self) -> dict[str, object]:
        return {"source": self.source, "files": [Path(file).name for file in self.files]}


def _recorded(requests: Sequence[Request], silent: Sequence[str] = ()) -> Recorded:
    return Recorded(tuple(requests), tuple(silent), interrupted=False)
