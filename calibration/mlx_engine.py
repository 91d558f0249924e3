"""The MLX engine: the one module that imports mlx and mlx-lm.

Everything else that handles weights treats an array as opaque and hands it back to a function of this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache, trim_prompt_cache
from mlx_lm.utils import dequantize_model, load_model, load_tokenizer
from numpy.typing import NDArray

from calibration import rollback
from calibration.chat_text import ChatText
from calibration.checkpoints import Checkpoint
from calibration.cost_table import WIDEST
from calibration.engine import EngineError, Reading, Sampler, first_line
from calibration.host_clock import HostClock
from calibration.smollm2 import GROUP_SIZE

# Neither is annotated where it comes from.
_load_tokenizer: Callable[..., Any] = load_tokenizer
_async_eval: Callable[..., None] = mx.async_eval

PREFILL_CHUNK = 512
"""Positions per prefill forward; it bounds the memory of a long prompt."""
ROOM = WIDEST
"""Positions that a synthetic KV state has room for beyond its own, so that no timed forward has to enlarge it."""


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the metadata of a GGUF file, the metadata as plain Python values.

    Raises:
        EngineError: the file cannot be read as GGUF.
    """
    try:
        loaded: Any = mx.load(str(path), format="gguf", return_metadata=True)
    except (RuntimeError, ValueError) as error:
        raise EngineError(f"{path}: not a GGUF file that mlx can read ({first_line(error)})") from error
    arrays, metadata = loaded
    return arrays, {key: value.tolist() if isinstance(value, mx.array) else value for key, value in metadata.items()}


def cast_weights(weights: Mapping[str, Any], dtype: str, *, keep_quantised: bool = False) -> dict[str, Any]:
    """Return `weights` in `dtype`, every quantised one dequantised in float32 first unless they are kept."""
    cast: dict[str, Any] = {}
    for name, array in weights.items():
        stem, _, part = name.rpartition(".")
        scales = weights.get(f"{stem}.scales")
        if scales is None or (keep_quantised and part == "weight"):
            cast[name] = array if array.dtype == mx.uint32 else array.astype(getattr(mx, dtype))
        elif keep_quantised:
            cast[name] = array.astype(getattr(mx, dtype))
        elif part == "weight":
            cast[name] = _dequantise(array, scales, weights[f"{stem}.biases"]).astype(getattr(mx, dtype))
    return cast


def _dequantise(packed: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
    bits = packed.shape[-1] * 32 // (scales.shape[-1] * GROUP_SIZE)
    wide = (scales.astype(mx.float32), biases.astype(mx.float32))
    return mx.dequantize(packed, *wide, group_size=GROUP_SIZE, bits=bits)


def save_weights(path: Path, weights: Mapping[str, Any]) -> None:
    """Write `weights` as safetensors and read their names back, for a full disk may go unnoticed while writing.

    Raises:
        EngineError: the file could not be written whole.
    """
    try:
        mx.save_safetensors(str(path), dict(weights), metadata={"format": "mlx"})
        mx.load(str(path))
    except (RuntimeError, OSError) as error:
        raise EngineError(f"{path}: cannot write the weights ({first_line(error)})") from error


class MlxModel(HostClock):
    """A loaded mlx-lm model and the request it is decoding: everything of an engine that needs no checkpoint."""

    def __init__(self, model: Any) -> None:
        """Take a model as mlx-lm loads it."""
        self._model = model
        self._unread: deque[tuple[Any, Any, Any]] = deque()
        self._newest: Any = None
        self._said: Any = None
        self.start(Sampler())

    @property
    def vocabulary(self) -> int:
        """How many ids the model knows, from 0; the largest number of them where it does not say."""
        return int(getattr(_config(self._model), "vocab_size", 2**31 - 1))

    @property
    def longest(self) -> int | None:
        """The longest context the model was made for, in positions; None when it does not say."""
        found = getattr(_config(self._model), "max_position_embeddings", None)
        return found if isinstance(found, int) else None

    @property
    def context(self) -> int:
        """Positions in the KV state, those of forwards in flight included."""
        return self._context

    def check_rollback(self, positions: int) -> None:
        """Refuse a model that cannot take back what it was fed; see `calibration.engine.Engine`."""
        layers = [(type(layer).__name__, getattr(layer, "max_size", None)) for layer in _states(self._cache)]
        rollback.check(layers, positions, self.longest)

    def start(self, sampler: Sampler, cache: Any = None) -> None:
        """Begin a request with an empty KV state, or with one that already holds part of it."""
        self._cache = make_prompt_cache(self._model) if cache is None else cache
        self._context = int(getattr(next(_states(self._cache)), "offset", 0)) if cache else 0
        self._sampler = sampler
        self._margins = False
        self._unread.clear()

    def prefill(self, prompt: Sequence[int], sampler: Sampler, *, margins: bool = False) -> None:
        """Forget what came before, process `prompt` and start the choice of the first token."""
        self.start(sampler)
        self._margins = margins
        self.fill(prompt[:-1])
        self.submit(prompt[-1])

    def pretend(self, positions: int) -> None:
        """Forget what came before and hold so many positions of anything, as if a prompt had been processed."""
        if not self._context:
            mx.eval(self._rows([0]))
        last = self._cache
        self.start(Sampler())
        for layer, filled in zip(_states(self._cache), _states(last), strict=True):
            keys, values = (mx.repeat(part[..., :1, :], positions + ROOM, axis=2) for part in filled.state[:2])
            layer.update_and_fetch(keys, values)
        mx.eval([layer.state for layer in self._cache])
        self._context = positions + ROOM
        self.trim(ROOM)

    def fill(self, tokens: Sequence[int]) -> None:
        """Append tokens to the KV state whose followers nobody asks for; see `calibration.engine.Engine`."""
        for start in range(0, len(tokens), PREFILL_CHUNK):
            chunk = tokens[start : start + PREFILL_CHUNK]
            self._model(mx.array([list(chunk)]), cache=self._cache)
            mx.eval([layer.state for layer in self._cache])
            self._context += len(chunk)

    def submit(self, token: int | None = None) -> float:
        """Start a width-1 forward without reading it; return the seconds that building it took."""
        began_s = self.clock_s()
        logits = self._model(self._newest[None, None] if token is None else mx.array([[token]]), cache=self._cache)
        self._context += 1
        self._newest = _choose(logits[0, -1], self._sampler, self._context)
        # Nobody pays for a margin that was not asked for.
        margin = _margin(logits[0, -1]) if self._margins else None
        built_s = self.clock_s() - began_s
        _async_eval(*(part for part in (self._newest, margin) if part is not None))
        self._unread.append((self._newest, margin, logits[0]))
        return built_s

    def read(self) -> Reading:
        """Wait for the oldest unread result."""
        token, margin, self._said = self._unread.popleft()
        return Reading(token.item(), float("nan") if margin is None else margin.item())

    def forward(self, tokens: Sequence[int]) -> list[int]:
        """Forward `tokens` at once and return what is chosen after each of them."""
        logits = self._said = self._rows(tokens)
        if self._sampler.greedy:
            chosen = mx.argmax(logits, axis=-1)
        else:
            first = self._context - len(tokens) + 1
            chosen = mx.stack([_choose(row, self._sampler, first + place) for place, row in enumerate(logits)])
        self._newest = chosen[-1]
        found: Any = chosen.tolist()
        return list(found)

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Forward `tokens` at once and return the logits after each of them, a row each."""
        return np.array(self._rows(tokens).astype(mx.float32))

    def log_probabilities(self) -> list[Any]:
        """Return, as mlx arrays, the log-probabilities behind what was read last, a row for each position."""
        return list(self._said - mx.logsumexp(self._said, axis=-1, keepdims=True))

    def trim(self, positions: int) -> None:
        """Take the newest positions back; see `calibration.engine.Engine`."""
        mx.eval([token for token, _, _ in self._unread])
        self._unread.clear()
        trimmed = trim_prompt_cache(self._cache, positions) if positions else 0
        if trimmed != positions:
            raise EngineError(f"the model's state gave back {trimmed} positions where {positions} were rejected")
        self._context -= positions

    def _rows(self, tokens: Sequence[int]) -> Any:
        self._context += len(tokens)
        return self._model(mx.array([list(tokens)]), cache=self._cache)[0]


class MlxEngine(ChatText, MlxModel):
    """One model of a local mlx-lm checkpoint; see `calibration.engine.Engine`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint, never running code from it.

        Raises:
            EngineError: mlx-lm cannot make a model or a tokenizer of it.
        """
        directory = checkpoint.directory
        self._checkpoint = checkpoint
        try:
            model, config = load_model(directory, trust_remote_code=False)
            self._tokenizer = _load_tokenizer(
                directory, {"trust_remote_code": False}, eos_token_ids=config.get("eos_token_id")
            )
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"{directory}: mlx-lm cannot load it ({first_line(error)})") from error
        if checkpoint.cast is not None:
            model = dequantize_model(model)
            model.set_dtype(getattr(mx, checkpoint.cast))
            mx.eval(model.parameters())
        # Metal may page out a large model between two forwards, unless this is set as mlx-lm's own loop sets it.
        if wired := mx.device_info().get("max_recommended_working_set_size"):
            mx.set_wired_limit(int(wired))
        super().__init__(model)

    def provenance(self) -> dict[str, object]:
        """Return the checkpoint's provenance, the versions, the device and how a prompt becomes ids."""
        return {
            **self._checkpoint.provenance(),
            "mlx": version("mlx"),
            "mlx_lm": version("mlx-lm"),
            "activations": str(self._model(mx.array([[0]])).dtype).rpartition(".")[2],
            "device": f"{mx.device_info()['device_name']}, {mx.default_device().type.name}",
            "eos": sorted(self.eos),
            "chat_template": bool(self._tokenizer.has_chat_template),
        }


def _states(cache: Iterable[Any]) -> Iterator[Any]:
    """Yield the KV states of a model: one a layer, or those that a layer keeps beside each other (a `CacheList`)."""
    for layer in cache:
        yield from getattr(layer, "caches", (layer,))


def _config(model: Any) -> Any:
    """Return what a model knows of its own language part: mlx-lm keeps it in either place, and at times one deeper."""
    found = getattr(model, "args", None) or getattr(model, "config", None)
    nested = getattr(found, "text_config", None)
    return SimpleNamespace(**nested) if isinstance(nested, Mapping) else nested or found


def _choose(logits: mx.array, sampler: Sampler, position: int) -> mx.array:
    """Choose the token at `position`, counted from the start of the prompt.

    The key depends on nothing but the seed and the position, so a verify that decides several positions at once draws
    what single steps would have drawn.
    """
    if sampler.greedy:
        return mx.argmax(logits)
    key = mx.array([sampler.seed, position], dtype=mx.uint32)
    return mx.random.categorical(logits.astype(mx.float32) / sampler.temperature, key=key)


def _margin(logits: mx.array) -> mx.array:
    best_two = mx.topk(logits.astype(mx.float32), 2)
    return mx.max(best_two) - mx.min(best_two)
