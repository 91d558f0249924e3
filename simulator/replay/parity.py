"""Whether two replies of one model are the same, and if not, whether a tie between two tokens explains it.

A policy's reply is held against plain decoding's in the same session, and against the recorded one, which was decoded
plainly too.

A batched forward may round otherwise than single ones do. That excuses a difference only where both paths hold the
same two tokens on top and the gap between these is as small, in both, as what the paths differ by anyhow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.engine import Engine
from simulator.schedule import Event

Row = NDArray[np.float32]
Tokens = tuple[int | None, int | None]
"""The plainly decoded reply's token and the policy's; None where a reply had ended."""

TIE = 4.0
"""A gap counts as a tie up to so many times the largest difference of a logit between the paths."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How a reply compares with one that was decoded plainly."""

    verdict: str
    """One of `VERDICTS`."""
    position: int | None = None
    """The first place in the reply where they differ."""
    tokens: Tokens | None = None
    """What stands there in both replies."""
    gaps: tuple[float, float] | None = None
    """Largest less second-largest logit there, on the path of single steps and on the policy's."""
    largest_difference: float | None = None
    """The largest difference of a logit between the paths there."""

    def document(self) -> dict[str, Any]:
        """Return what is known as plain values."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Parity:
        """Return a parity from its document.

        Raises:
            ValueError: it is none.
        """
        listed: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        found = cls(**listed)
        there = (found.position, found.tokens, found.gaps, found.largest_difference)
        figures = [one for one in (*(found.gaps or ()), found.largest_difference) if one is not None]
        if (
            found.verdict not in VERDICTS
            or (found.verdict != "same" and None in there)
            or any(len(pair) != 2 for pair in (found.tokens, found.gaps) if pair is not None)
            or not all(math.isfinite(one) for one in figures)
        ):
            raise ValueError(f"no comparison {dict(document)}")
        return found

    def __str__(self) -> str:
        if self.position is None or self.tokens is None:
            return self.verdict
        there, here = ("the end" if token is None else token for token in self.tokens)
        said = f"{self.verdict} at token {self.position}: {there} there, {here} here"
        if self.gaps is None:
            return said
        return (
            f"{said}; logit gaps {self.gaps[0]:.4g} and {self.gaps[1]:.4g}, paths differ by up to "
            f"{self.largest_difference:.4g}"
        )


SAME = Parity("same")
VERDICTS = ("same", "near-tie", "differs")
"""The worse the later."""


def severity(parity: Parity) -> int:
    """Return how bad a verdict is; the larger the worse."""
    return VERDICTS.index(parity.verdict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a free reply compares."""

    parity: Parity
    """With plain decoding in the same session."""
    recording: Parity
    """With the recording."""

    def document(self) -> dict[str, Any]:
        """Return both as plain values."""
        return {"parity": self.parity.document(), "recording": self.recording.document()}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Comparison:
        """Return a comparison from its document."""
        return cls(Parity.of(document["parity"]), Parity.of(document["recording"]))


def first_difference(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    """Return the first place where two replies differ, None when they are equal.

    >>> first_difference([1, 2, 3], [1, 2, 4]), first_difference([1, 2], [1, 2, 3]), first_difference([1], [1])
    (2, 2, None)
    """
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return place
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


def judge(plain: Row, policy: Row, position: int, tokens: Tokens) -> Parity:
    """Judge a difference by the logits of both paths at its position."""
    tops = [np.argsort(row)[-2:] for row in (plain, policy)]
    with np.errstate(invalid="ignore"):
        gaps = (float(plain[tops[0][1]] - plain[tops[0][0]]), float(policy[tops[1][1]] - policy[tops[1][0]]))
        largest = float(np.max(np.abs(plain - policy)))
    held = set(tops[0].tolist())
    said = {token for token in tokens if token is not None}
    finite = all(map(math.isfinite, (*gaps, largest)))
    tie = finite and held == set(tops[1].tolist()) and said <= held and max(gaps) <= TIE * largest
    # Logits that overflowed explain nothing, and their differences are no numbers that a file can hold.
    first, second, apart = np.nan_to_num([*gaps, largest], nan=np.finfo(np.float64).max).tolist()
    return Parity("near-tie" if tie else "differs", position, tokens, (first, second), apart)


def compare(
    engine: Engine, prompt: Sequence[int], plain: Sequence[int], reply: Sequence[int], events: Sequence[Event]
) -> Parity:
    """Compare a reply with a plainly decoded one; where they differ, both paths are walked again for their logits.

    Args:
        engine: its KV state holds the prompt and nothing else, and is left so.
        prompt: what both reply to.
        plain: the plainly decoded reply.
        reply: the policy's.
        events: the policy's steps, every one on its own.
    """
    position = first_difference(plain, reply)
    if position is None:
        return SAME
    tokens = tuple(said[position] if position < len(said) else None for said in (plain, reply))
    if position == 0:
        # Both paths are the prefill.
        engine.trim(1)
        row = engine.logits(prompt[-1:])[0]
        return judge(row, row, position, (tokens[0], tokens[1]))
    singles = [Event("S", 0, 1, 0, False)] * position
    rows = []
    for said, steps in ((plain, singles), (reply, events)):
        rows.append(_logits_at(engine, said, steps, position))
        engine.trim(engine.context - len(prompt))
    return judge(rows[0], rows[1], position, (tokens[0], tokens[1]))


def _logits_at(engine: Engine, reply: Sequence[int], steps: Sequence[Event], position: int) -> NDArray[np.float32]:
    """Walk the steps' forwards and return the logits from which the token at `position` was chosen.

    What a rejected proposal was does not matter to the positions before it, only that it was there.
    """
    known = 1
    for code, size, emitted, _, stop in steps:
        if code == "B":
            continue
        width = size + 1 if code == "V" else 1
        fed = [*reply[known - 1 : known - 1 + width]]
        fed += [fed[-1]] * (width - len(fed))
        if position < known + emitted + stop:
            row: NDArray[np.float32] = engine.logits(fed)[position - known]
            return row
        engine.forward(fed)
        engine.trim(width - emitted)
        known += emitted
    raise AssertionError("the steps do not reach the position")
