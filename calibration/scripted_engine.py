"""An engine that needs no hardware: it says what a script says, one byte a token."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from calibration.engine import Reading, Sampler

END = 256
"""The id that ends a reply; those below are the bytes of UTF-8."""


class ScriptedEngine:
    """The `calibration.engine.Engine` whose replies are known in advance.

    Args:
        script: the reply to each prompt; a reply goes on with `END` for as long as it is asked.
    """

    def __init__(self, script: Mapping[str, str]) -> None:
        self._script = script
        self._reply: list[int] = []
        self._unread: deque[int] = deque()
        self._submitted = 0

    @property
    def eos(self) -> frozenset[int]:
        """The one id that ends a reply."""
        return frozenset({END})

    def provenance(self) -> dict[str, object]:
        """Return a model's name and no more."""
        return {"model": "scripted"}

    def encode(self, prompt: str) -> list[int]:
        """Return the bytes of the message."""
        return list(prompt.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of the bytes."""
        return bytes(token for token in tokens if token < END).decode(errors="replace")

    def prefill(self, prompt: Sequence[int], sampler: Sampler) -> None:
        """Look up the reply; the sampler changes nothing."""
        self._reply = list(self._script[self.decode(prompt)].encode())
        self._unread.clear()
        self._submitted = 0
        self.submit()

    def submit(self) -> None:
        """Take the next byte of the reply."""
        place = self._submitted
        self._unread.append(self._reply[place] if place < len(self._reply) else END)
        self._submitted += 1

    def read(self) -> Reading:
        """Return the oldest byte that was not read; it is always certain by one."""
        return Reading(self._unread.popleft(), 1.0)
