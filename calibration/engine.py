"""The engine a recording, a calibration or a replay drives, as a contract without any hardware in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class EngineError(ValueError):
    """A checkpoint or an engine that cannot be used, said in one line."""


def first_line(error: BaseException) -> str:
    """Return what an error of a library says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class Reading(NamedTuple):
    """What one forward said about one position."""

    token: int
    """The id that was chosen."""

    margin: float
    """The largest logit minus the second largest, before any temperature; 0 is a tie, nan was not asked for."""


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
    """A language model that decodes one request at a time, and the only clock there is.

    A request begins with one `prefill`. After it every `submit` adds one forward and every `read` takes the oldest
    result that nobody has read, the prefill's included; a read without one outstanding is a bug of the caller, as is
    a `forward` or `logits` with one outstanding.
    """

    @property
    def eos(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""

    @property
    def vocabulary(self) -> int:
        """How many ids the model knows, from 0."""

    @property
    def longest(self) -> int | None:
        """The longest context the model was made for, in positions; None when it does not say."""

    @property
    def context(self) -> int:
        """Positions in the KV state, those of forwards in flight included."""

    def provenance(self) -> dict[str, object]:
        """Return the header of a trace: model, weights, versions and device."""

    def encode(self, *turns: str) -> list[int]:
        """Return the ids of what a user and the model said in turn, in the model's own chat form, ready for its answer.

        Args:
            turns: an odd number of messages, the user's first and last.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`."""

    def check_rollback(self, positions: int) -> None:
        """Refuse, before anything runs, a model that cannot take back what it was fed.

        Args:
            positions: how many the KV state will hold at most, rejected proposals included.

        Raises:
            EngineError: a layer's state cannot be trimmed, or the model's context is shorter.
        """

    def prefill(self, prompt: Sequence[int], sampler: Sampler, *, margins: bool = False) -> None:
        """Forget what came before, process `prompt` and start the choice of the first token.

        Args:
            prompt: at least one id.
            sampler: how tokens are chosen from here on.
            margins: whether every submitted forward also finds its margin, which costs time.
        """

    def fill(self, tokens: Sequence[int]) -> None:
        """Append tokens to the KV state whose followers nobody asks for, and wait until they are in."""

    def pretend(self, positions: int) -> None:
        """Forget what came before and hold so many positions of anything, as if a prompt had been processed.

        What a forward costs does not depend on what these positions hold.
        """

    def submit(self, token: int | None = None) -> float:
        """Start a width-1 forward without reading it.

        Args:
            token: what it is fed; None is the newest result, read or not.

        Returns:
            The seconds that the host took to build it; what else the call took was handing it over.
        """

    def read(self) -> Reading:
        """Wait for the oldest unread result."""

    def forward(self, tokens: Sequence[int]) -> list[int]:
        """Forward `tokens` at once and return what is chosen after each of them."""

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Forward `tokens` at once and return the logits after each of them, a row each."""

    def trim(self, positions: int) -> None:
        """Take the newest `positions` back, after waiting for what is in flight, which is forgotten.

        Raises:
            EngineError: the state did not give back exactly so many.
        """

    def work(self, seconds: float) -> None:
        """Keep the host busy so long, as a server is that detokenises and streams."""

    def clock_s(self) -> float:
        """Return the engine's clock: seconds since an arbitrary moment."""
