"""What a policy is: frozen settings that make a fresh governor for every request."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, Protocol

from policies.errors import PolicyError
from policies.governor import Governor
from policies.settings import OneOf, Range, settings_of


class Prices(Protocol):
    """What a forward costs on some machine, in seconds; `calibration.Costs` is one."""

    def step_s(self, context: int) -> float:
        """Return the seconds of a pipelined width-1 forward over `context` positions."""

    def sync_s(self, width: int, context: int) -> float:
        """Return the seconds of a synchronous forward of `width` positions over `context`."""

    def overlap_s(self, context: int) -> float:
        """Return the seconds that one lost overlap costs: a synchronous step less a pipelined one."""

    def among(self, rows: int) -> Prices:
        """Return what a forward costs one of so many requests that are decoded side by side, all of them counted."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The settings of one policy; a subclass in a file of its own adds its constants.

    Raises:
        PolicyError: when a setting is outside its range.
    """

    needs_prices: ClassVar[bool] = False
    """Whether its decisions depend on what forwards cost."""

    pipeline_after: Annotated[int, Range(0, 1024)] = 2
    """Plain rounds in a row after which decoding is pipelined again: it starts when the streak exceeds this
    (the reference loop's `PLAIN_ROUNDS_BEFORE_PIPELINE`)."""

    def __post_init__(self) -> None:
        for setting in settings_of(type(self)).values():
            setting.check(getattr(self, setting.name))

    @property
    def name(self) -> str:
        """The name on the command line: the file that defines the policy."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def settings(self) -> dict[str, int | float | str | None]:
        """Every effective setting by name."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the name with the settings that are not the defaults, as a command line takes it."""
        known = settings_of(type(self))
        changed = [f"{name}={value}" for name, value in self.settings.items() if value != known[name].default]
        return f"{self.name}:{','.join(changed)}" if changed else self.name

    def governor(self, prices: Prices) -> Governor:
        """Make the running half for one request on a machine with these prices."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class LookupPolicy(Policy):
    """A policy that proposes what followed the last few tokens earlier in the context.

    The defaults and limits are the reference engine's.
    """

    ngram_max: Annotated[int, Range(1, 16)] = 3
    """Longest suffix, in tokens, that is looked for (tried first)."""
    ngram_min: Annotated[int, Range(1, 16)] = 2
    """Shortest suffix that is looked for; at 1 the reference saw prose 25 % slower."""
    max_draft: Annotated[int, Range(1, 64)] = 7
    """Most tokens proposed in one round; a verify is one position wider."""
    match: Annotated[str, OneOf("latest", "earliest")] = "latest"
    """Which of several earlier occurrences is continued."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ngram_max < self.ngram_min:
            raise PolicyError(f"ngram_max must be at least ngram_min {self.ngram_min} (got {self.ngram_max})")
