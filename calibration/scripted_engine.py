"""An engine that needs no hardware: it says what a script says, and its clock follows a table of costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.costs import Costs
from calibration.engine import Reading, Sampler
from calibration.rollback import check
from traces import Request

END = 256
"""The id that ends a reply of text; those below are the bytes of UTF-8."""
CERTAIN = 1.0
"""The logit of the scripted token; every other is 0."""

FREE = Costs("free", range(1 << 16), dict.fromkeys(range(1, 66), 0.0))
"""Forwards that take no time."""


class Pending(NamedTuple):
    """A result that nobody has read."""

    token: int
    done_s: float
    """When the device has it."""
    read_s: float
    """What reading it costs the host then."""


class ScriptedEngine:
    """The `calibration.engine.Engine` whose replies and times are known in advance.

    Args:
        script: the reply to each prompt, both as text or as tuples of ids; a reply goes on with `end` for as long as
            it is asked.
        costs: what every forward takes on its clock.
        end: the id that ends a reply.
        wide: by position (counted from the start of the prompt, as that of the token chosen), the logits of some
            tokens where a forward of several positions sees them otherwise; all others are as scripted.
        narrow: the same for forwards of one position.
    """

    def __init__(
        self,
        script: Mapping[Any, str | Sequence[int]],
        costs: Costs = FREE,
        end: int = END,
        *,
        wide: Mapping[int, Mapping[int, float]] | None = None,
        narrow: Mapping[int, Mapping[int, float]] | None = None,
    ) -> None:
        self._script = {_ids(prompt): _ids(reply) for prompt, reply in script.items()}
        self._costs = costs
        self._end = end
        self._odd = (narrow or {}, wide or {})
        self._unread: deque[Pending] = deque()
        self._prompt_tokens = 0
        self._reply: tuple[int, ...] = ()
        self._context = 0
        self._host_s = self._free_s = 0.0
        self.widths: list[int] = []
        """The width of every forward since the prefill, which is none of them."""

    @classmethod
    def of(cls, requests: Iterable[Request], costs: Costs = FREE) -> ScriptedEngine:
        """Make an engine that says what was recorded."""
        script = {tuple(request.prompt.tolist()): tuple(request.reply.tolist()) for request in requests}
        return cls(script, costs, end=1 + max(max(*prompt, *reply) for prompt, reply in script.items()))

    @property
    def eos(self) -> frozenset[int]:
        """The one id that ends a reply."""
        return frozenset({self._end})

    @property
    def vocabulary(self) -> int:
        """Every id up to the one that ends a reply."""
        return self._end + 1

    @property
    def longest(self) -> int:
        """The longest context that has a price."""
        return self._costs.contexts[-1]

    @property
    def context(self) -> int:
        """Positions fed so far."""
        return self._context

    def provenance(self) -> dict[str, object]:
        """Return a model's name and what belongs to it."""
        return {"model": "scripted", "dtype": "none", "device": "none", "eos": [self._end]}

    def encode(self, *turns: str) -> list[int]:
        """Return the bytes of the messages, a line break between them."""
        return list("\n".join(turns).encode())

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of the bytes."""
        return bytes(token for token in tokens if token < END).decode(errors="replace")

    def check_rollback(self, positions: int) -> None:
        """Refuse only a context that has no price."""
        check((), positions, self.longest)

    def prefill(self, prompt: Sequence[int], sampler: Sampler, *, margins: bool = False) -> None:
        """Look up the reply; the sampler changes nothing, and a prompt without a reply is answered with the end."""
        self._prompt_tokens = self._context = len(prompt)
        self._reply = self._script.get(tuple(prompt), ())
        self._unread.clear()
        self.widths.clear()
        self._free_s = self._host_s + self._costs.prefill_s(len(prompt))
        self._unread.append(Pending(self._chosen(self._context, 1), self._free_s, 0.0))

    def fill(self, tokens: Sequence[int]) -> None:
        """Let the host wait for what a prompt that is so much longer costs more."""
        before = self._context
        self._prompt_tokens = self._context = before + len(tokens)
        self._host_s += self._costs.prefill_s(self._context) - self._costs.prefill_s(before)

    def pretend(self, positions: int) -> None:
        """Hold so many positions, after which the script is at its end."""
        self._prompt_tokens = self._context = positions
        self._reply = ()
        self._unread.clear()
        self.widths.clear()

    def submit(self, token: int | None = None) -> float:
        """Take the next token of the reply, and block while more than the run-ahead is outstanding."""
        self._launch(1)
        self._host_s = max(self._host_s, self._free_s - self._costs.run_ahead_s)
        self._unread.append(Pending(self._chosen(self._context, 1), self._free_s, self._costs.read_s))
        return self._costs.launch_s

    def read(self) -> Reading:
        """Return the oldest token that was not read; it is always certain by one."""
        token, done_s, read_s = self._unread.popleft()
        self._host_s = max(self._host_s, done_s) + read_s
        return Reading(token, CERTAIN)

    def forward(self, tokens: Sequence[int]) -> list[int]:
        """Take the tokens that the script has after each of those fed, whatever they are."""
        width = len(tokens)
        self._launch(width)
        self._host_s = self._free_s + self._costs.read_s
        first = self._context - width + 1
        return [self._chosen(first + place, width) for place in range(width)]

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return rows that have the scripted token on top."""
        self.forward(tokens)
        first, width = self._context - len(tokens) + 1, len(tokens)
        return np.array([self._row(first + place, width) for place in range(width)], dtype=np.float32)

    def trim(self, positions: int) -> None:
        """Take positions back."""
        self._unread.clear()
        self._host_s = max(self._host_s, self._free_s)
        self._context -= positions

    def work(self, seconds: float) -> None:
        """Let the host's clock pass."""
        self._host_s += seconds

    def clock_s(self) -> float:
        """Return the host's clock."""
        return self._host_s

    def _launch(self, width: int) -> None:
        self._host_s += self._costs.launch_s
        self._free_s = max(self._host_s, self._free_s) + self._costs.device_s(width, self._context)
        self._context += width
        self.widths.append(width)

    def _chosen(self, position: int, width: int) -> int:
        if position in self._odd[width > 1]:
            return int(np.argmax(self._row(position, width)))
        return self._said(position)

    def _row(self, position: int, width: int) -> NDArray[np.float32]:
        row = np.zeros(self.vocabulary, dtype=np.float32)
        row[self._said(position)] = CERTAIN
        for token, logit in self._odd[width > 1].get(position, {}).items():
            row[token] = logit
        return row

    def _said(self, position: int) -> int:
        place = position - self._prompt_tokens
        return self._reply[place] if 0 <= place < len(self._reply) else self._end


def _ids(said: str | Sequence[int]) -> tuple[int, ...]:
    return tuple(said.encode()) if isinstance(said, str) else tuple(said)
