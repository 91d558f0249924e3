"""The reference engine's own counters and rate, out of its logs, beside the simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.run import Run, ratio
from traces import Request, TraceError
from traces.mlxcel_log import COUNTERS, LoggedRun, read_logs


@dataclass(frozen=True, slots=True)
class Comparison:
    """One request under one policy, and what the engine did with it.

    A log of a run without prompt lookup has no counters; its rate stands beside that of plain decoding.
    """

    request: str
    """The request's id."""
    logged: LoggedRun
    """The engine's run."""
    counters: Mapping[str, int]
    """The simulated counters that the log has too, as the engine counts them."""
    tokens_per_s: float | None
    """The simulated rate, prefill included."""

    @property
    def differences(self) -> dict[str, tuple[int, int]]:
        """Simulated and logged value of every counter in which they differ."""
        theirs = self.logged.counters or {}
        return {name: (ours, theirs[name]) for name, ours in self.counters.items() if ours != theirs[name]}

    @property
    def equal(self) -> bool | None:
        """Whether all counters are equal; None when the log has none."""
        return not self.differences if self.counters else None

    @property
    def ratio(self) -> float | None:
        """The simulated rate over the engine's; None when one is missing."""
        if self.tokens_per_s is None or self.logged.tokens_per_s is None:
            return None
        return ratio(self.tokens_per_s, self.logged.tokens_per_s)

    def document(self) -> dict[str, Any]:
        """Return what the record of a request says of it."""
        return {
            "file": self.logged.file,
            "counters": dict(self.logged.counters or {}),
            "equal": self.equal,
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            "tokens_per_s": self.logged.tokens_per_s,
            "ratio": self.ratio,
        }

    def title(self, policy: str) -> str:
        """Return a report's line: what is compared under a policy, and whether the counters are equal."""
        if not self.counters:
            return f"plain decoding against {self.logged.where} (request {self.request})"
        count, differ = len(self.counters), len(self.differences)
        verdict = f"{differ} of {count} counters differ" if differ else f"all {count} counters equal"
        return f"{policy} against {self.logged.where} (request {self.request}): {verdict}"

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the rows of the table below it: the counters that differ, and the rates."""
        yield "", "engine", "simulated", "ratio"
        for name, (ours, theirs) in self.differences.items():
            yield name, str(theirs), str(ours), ""
        theirs_per_s, quotient = self.logged.tokens_per_s, self.ratio
        yield (
            "tokens/s",
            "-" if theirs_per_s is None else f"{theirs_per_s:.1f}",
            "-" if self.tokens_per_s is None else f"{self.tokens_per_s:.1f}",
            "-" if quotient is None else f"{quotient:.3f}",
        )


class EngineLogs:
    """Logged runs, found by what was said."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read the logs.

        Raises:
            TraceError: a log cannot be read or is refused.
        """
        self._runs: dict[tuple[bytes, bytes], list[LoggedRun]] = {}
        self._found: set[str] = set()
        for run in read_logs(files):
            self._runs.setdefault(_said(run), []).append(run)

    def find(self, request: Request) -> LoggedRun | None:
        """Return the run of the request's prompt and reply; of several alike, the one of the request's id.

        Raises:
            TraceError: several runs are alike and the id does not tell which is meant.
        """
        alike = self._runs.get(_said(request), [])
        named = [run for run in alike if run.id == request.id] if len(alike) > 1 else alike
        if alike and not named:
            raise TraceError(
                f"{alike[1].where}: has the prompt and reply of {alike[0].where} too, and request {request.id!r} "
                f"has the id of neither (got {', '.join(repr(run.id) for run in alike)}); give one of them"
            )
        self._found.update(run.id for run in named)
        return named[0] if named else None

    def check_all_found(self) -> None:
        """Refuse a log that nothing was compared with.

        Raises:
            TraceError: a run whose prompt and reply no request has, or one whose request has another run.
        """
        for alike in self._runs.values():
            for run in (run for run in alike if run.id not in self._found):
                taken = next((other.where for other in alike if other.id in self._found), None)
                if taken:
                    raise TraceError(f"{run.where}: has the prompt and reply of {taken} too; give one of them")
                raise TraceError(
                    f"{run.where}: no request has this prompt and reply "
                    f"(got {len(run.prompt)} and {len(run.reply)} tokens); record --from mlxcel-log makes one"
                )


def compare(run: Run, logged: LoggedRun) -> Comparison:
    """Set a simulated run beside the engine's run of the same prompt and reply."""
    if logged.counters is None:
        return Comparison(run.request.id, logged, {}, ratio(run.generated, run.plain_total_s))
    schedule = run.schedule
    ours = {name: getattr(schedule, name) for name in COUNTERS if name in logged.counters}
    ours["rounds"] = asked_rounds(run)
    return Comparison(run.request.id, logged, ours, ratio(run.generated, run.total_s))


def asked_rounds(run: Run) -> int:
    """Return the rounds that the engine prints: forwards about which its drafter was asked.

    A synchronous forward for the last allowed token is none of them, since nobody asks with one token left. (An ask
    that is taken back because its proposal turned up with a step in flight belongs to no forward.)
    """
    schedule = run.schedule
    if not schedule.events:
        return 0
    last = schedule.events[-1]
    unasked = last.code == "S" and schedule.generated - last.emitted + 1 == run.request.max_tokens
    return schedule.rounds - unasked


def _said(run: LoggedRun | Request) -> tuple[bytes, bytes]:
    return run.prompt.tobytes(), run.reply.tobytes()
