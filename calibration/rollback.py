"""Which models can take back what they were fed: known from the kind of every layer's state, before anything runs.

Asking the state itself is not enough: a sliding window that is still empty says that it can be trimmed, and once it
has wrapped around a trim silently does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from calibration.engine import EngineError

ROLLS_BACK = frozenset({"KVCache", "ConcatenateKVCache", "QuantizedKVCache"})
"""The states of mlx-lm that keep every position, so that the newest can be dropped."""

_REASONS = {
    "RotatingKVCache": "keeps a sliding window of {window} positions and overwrites the oldest",
    "ArraysCache": "is a recurrent state, in which every token is mixed for good",
    "MambaCache": "is a recurrent state, in which every token is mixed for good",
    "ChunkedKVCache": "drops whole chunks of old positions",
}


def check(layers: Iterable[tuple[str, int | None]], positions: int, longest: int | None) -> None:
    """Refuse a model whose state cannot roll back, or whose context is too short.

    Args:
        layers: the kind of each state of each layer, and its window in positions where it has one.
        positions: how many the state will hold at most, rejected proposals included.
        longest: the longest context the model was made for, in positions; None when it does not say.

    Raises:
        EngineError: with the reason.
    """
    for kind, window in layers:
        if kind not in ROLLS_BACK:
            reason = _REASONS.get(kind, "is of a kind not known to keep every position").format(window=window)
            need = f"; this run needs {positions}" if window is not None and positions >= window else ""
            raise EngineError(f"the model cannot roll back rejected proposals: a layer's {kind} {reason}{need}")
        if window is not None and positions >= window:
            raise EngineError(
                f"the model cannot roll back rejected proposals: a layer's {kind} keeps {window} positions and this "
                f"run needs {positions}"
            )
    if longest is not None and positions > longest:
        raise EngineError(f"the model was made for contexts of up to {longest} positions (this run needs {positions})")
