"""The engine a recording, a calibration or a replay drives, as a contract without any hardware in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class EngineError(ValueError):
    """A checkpoint or an engine that cannot be used, said in one line."""


class Reading(NamedTuple):
    """What one forward said about one position."""

    token: int
    """The id that was chosen."""

    margin: float
    """The largest logit minus the second largest, before any temperature; 0 is a tie."""


@dataclass(frozen=True)
class Sampler:
    """How a token is chosen: greedily, or drawn with a key made of the seed and the position."""

    temperature: float = 0.0
    """0 takes the largest logit; anything above divides the logits before the draw."""

    seed: int = 0
    """Half of the key of every draw, from 0 to 2**32 - 1; without effect when greedy."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise EngineError(f"temperature must be 0 or more (got {self.temperature})")
        if not 0 <= self.seed < 2**32:
            raise EngineError(f"seed must be between 0 and {2**32 - 1} (got {self.seed})")

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.temperature == 0

    def provenance(self) -> dict[str, object]:
        """Return what a trace's header says about it."""
        if self.greedy:
            return {"kind": "greedy"}
        return {"kind": "keyed", "temperature": self.temperature, "seed": self.seed}


class Engine(Protocol):
    """A language model that decodes one request at a time.

    A request begins with one `prefill`. After it every `submit` adds one forward and every `read` takes the oldest
    result that nobody has read, the prefill's included; a read without one outstanding is a bug of the caller.
    """

    @property
    def eos(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""

    def provenance(self) -> dict[str, object]:
        """Return the header of a trace: model, weights, versions and device."""

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of a user's message in the model's own chat form, ready for its answer."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`."""

    def prefill(self, prompt: Sequence[int], sampler: Sampler) -> None:
        """Forget what came before, process `prompt` and start the choice of the first token."""

    def submit(self) -> None:
        """Start a width-1 forward fed by the newest token, whether or not it was read."""

    def read(self) -> Reading:
        """Wait for the oldest unread result."""
