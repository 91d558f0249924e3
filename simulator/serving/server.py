"""How a server is set up."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from calibration.server_costs import StorageKind
from simulator.errors import SimulationError

Storage = Literal["auto", "dense", "paged"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """The settings of a server; the defaults are the reference engine's.

    Raises:
        SimulationError: a setting outside its range.
    """

    parallel: int = 4
    """Slots: requests decoded side by side at most."""
    max_batch: int = 2
    """Rows up to which anybody is asked for proposals."""
    max_batch_prefill: int = 1
    """Waiting requests prefilled together at most (the reference: 4)."""
    prefill_chunk: int = 2048
    """Prompt tokens forwarded in one tick; a longer prompt is parked in between."""
    grant_interval: int = 16
    """Decode ticks that a parked prompt waits for its next chunk; 0 makes it wait until nothing decodes."""
    storage: Storage = "auto"
    """Where rows keep their KV state; `auto` is dense with one slot and paged with several."""
    paged_limit: int = 4096
    """Tokens of context beyond which a row on paged storage is not asked."""
    max_kv_size: int | None = None
    """Positions that a row's KV state may hold; with it no step is ever in flight."""
    pipelined: bool = True
    """Whether a step may be in flight while the one before it is read."""

    def __post_init__(self) -> None:
        for name in ("parallel", "max_batch", "max_batch_prefill", "prefill_chunk", "paged_limit", "max_kv_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SimulationError(f"{name} must be at least 1 (got {value})")
        if self.grant_interval < 0:
            raise SimulationError(f"grant_interval must be at least 0 (got {self.grant_interval})")

    @property
    def settings(self) -> dict[str, Any]:
        """Every effective setting by name."""
        return asdict(self) | {"storage": self.kv_storage}

    @property
    def paged(self) -> bool:
        """Whether rows are kept in the paged pool."""
        return self.storage == "paged" or (self.storage == "auto" and self.parallel > 1)

    @property
    def kv_storage(self) -> StorageKind:
        """Where rows keep their KV state, as prices name it."""
        return "paged" if self.paged else "dense"

    @property
    def draft_context(self) -> float:
        """Tokens of context beyond which a row is not asked."""
        return self.paged_limit if self.paged else math.inf

    def room(self, context: int) -> float:
        """Return how many tokens a proposal may have for its verify to fit after `context` tokens."""
        return math.inf if self.max_kv_size is None else self.max_kv_size - context - 2

    def limit(self, prompt_tokens: int, max_tokens: int) -> int:
        """Return how many tokens a request may emit: all it asks for, or what its KV state has room for.

        The prefill's token is emitted even when no further forward would fit.

        Raises:
            SimulationError: the prompt alone does not fit.
        """
        if self.max_kv_size is None:
            return max_tokens
        if prompt_tokens >= self.max_kv_size:
            raise SimulationError(f"a prompt of {prompt_tokens} tokens does not fit max_kv_size {self.max_kv_size}")
        return min(max_tokens, max(1, self.max_kv_size - prompt_tokens - 1))
