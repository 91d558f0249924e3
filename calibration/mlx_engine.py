"""The MLX engine: the one module that imports mlx and mlx-lm.

Everything else that handles weights treats an array as opaque and hands it back to a function of this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import dequantize_model, load_model, load_tokenizer

from calibration.checkpoints import Checkpoint
from calibration.engine import EngineError, Reading, Sampler

# Neither is annotated where it comes from.
_load_tokenizer: Callable[..., Any] = load_tokenizer
_async_eval: Callable[..., None] = mx.async_eval

PREFILL_CHUNK = 512
"""Positions per prefill forward; it bounds the memory of a long prompt."""


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the metadata of a GGUF file, the metadata as plain Python values.

    Raises:
        EngineError: the file cannot be read as GGUF.
    """
    try:
        loaded: Any = mx.load(str(path), format="gguf", return_metadata=True)
    except (RuntimeError, ValueError) as error:
        raise EngineError(f"{path}: not a GGUF file that mlx can read ({_first_line(error)})") from error
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


def _dequantise(packed: mx.array, scales: mx.array, biases: mx.array, group: int = 32) -> mx.array:
    bits = packed.shape[-1] * 32 // (scales.shape[-1] * group)
    wide = (scales.astype(mx.float32), biases.astype(mx.float32))
    return mx.dequantize(packed, *wide, group_size=group, bits=bits)


def save_weights(path: Path, weights: Mapping[str, Any]) -> None:
    """Write `weights` as safetensors and read their names back, for a full disk may go unnoticed while writing.

    Raises:
        EngineError: the file could not be written whole.
    """
    try:
        mx.save_safetensors(str(path), dict(weights), metadata={"format": "mlx"})
        mx.load(str(path))
    except (RuntimeError, OSError) as error:
        raise EngineError(f"{path}: cannot write the weights ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class MlxEngine:
    """One model of a local mlx-lm checkpoint and the request it is decoding; see `calibration.engine.Engine`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint, never running code from it.

        Raises:
            EngineError: mlx-lm cannot make a model or a tokenizer of it.
        """
        directory = checkpoint.directory
        self._checkpoint = checkpoint
        try:
            self._model, config = load_model(directory, trust_remote_code=False)
            self._tokenizer = _load_tokenizer(
                directory, {"trust_remote_code": False}, eos_token_ids=config.get("eos_token_id")
            )
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"{directory}: mlx-lm cannot load it ({_first_line(error)})") from error
        if checkpoint.cast is not None:
            self._model = dequantize_model(self._model)
            self._model.set_dtype(getattr(mx, checkpoint.cast))
            mx.eval(self._model.parameters())
        self._unread: deque[tuple[Any, Any]] = deque()

    @property
    def eos(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""
        return frozenset(self._tokenizer.eos_token_ids)

    def provenance(self) -> dict[str, object]:
        """Return the checkpoint's provenance, the versions, the device and how a prompt becomes ids."""
        return {
            **self._checkpoint.provenance(),
            "mlx": version("mlx"),
            "mlx_lm": version("mlx-lm"),
            "device": f"{mx.device_info()['device_name']}, {mx.default_device().type.name}",
            "eos": sorted(self.eos),
            "chat_template": bool(self._tokenizer.has_chat_template),
        }

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of a user's message in the model's own chat form, or bare when it has none."""
        if not self._tokenizer.has_chat_template:
            return list(self._tokenizer.encode(prompt))
        messages = [{"role": "user", "content": prompt}]
        return list(self._tokenizer.apply_chat_template(messages, add_generation_prompt=True))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`, special ones spelled out."""
        return str(self._tokenizer.decode(list(tokens)))

    def prefill(self, prompt: Sequence[int], sampler: Sampler) -> None:
        """Forget what came before, process `prompt` and start the choice of the first token."""
        self._cache = make_prompt_cache(self._model)
        self._sampler = sampler
        self._unread.clear()
        ids = list(prompt)
        last = len(ids) - 1
        for start in range(0, last, PREFILL_CHUNK):
            self._model(mx.array([ids[start : min(start + PREFILL_CHUNK, last)]]), cache=self._cache)
            mx.eval([layer.state for layer in self._cache])
        self._context = last
        self._forward(mx.array(ids[last:]))

    def submit(self) -> None:
        """Start a width-1 forward fed by the newest token, whether or not it was read."""
        self._forward(self._newest[None])

    def read(self) -> Reading:
        """Wait for the oldest unread result."""
        token, margin = (array.item() for array in self._unread.popleft())
        return Reading(token, margin)

    def _forward(self, tokens: mx.array) -> None:
        logits = self._model(tokens[None], cache=self._cache)[0, -1].astype(mx.float32)
        self._context += 1
        self._newest = _choose(logits, self._sampler, self._context)
        best_two = mx.topk(logits, 2)
        margin = mx.max(best_two) - mx.min(best_two)
        _async_eval(self._newest, margin)
        self._unread.append((self._newest, margin))


def _choose(logits: mx.array, sampler: Sampler, position: int) -> mx.array:
    """Choose the token at `position`, counted from the start of the prompt.

    The key depends on nothing but the seed and the position, so a verify that decides several positions at once draws
    what single steps would have drawn.
    """
    if sampler.greedy:
        return mx.argmax(logits)
    key = mx.array([sampler.seed, position], dtype=mx.uint32)
    return mx.random.categorical(logits / sampler.temperature, key=key)
