"""A random llama with a byte tokenizer, small enough that every test can make its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from calibration import smollm2

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
HIDDEN, LAYERS, HEADS, INNER = 64, 2, 4, 128
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_characters() -> list[str]:
    """Return the 256 characters by which byte-level BPE writes bytes."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [chr(code) for code in [*kept, *range(256, 256 + 256 - len(kept))]]


def metadata() -> dict[str, Any]:
    """Return what the GGUF file of such a model would say of itself."""
    tokens = [*SPECIAL, *byte_characters(), "th", "the"]
    return {
        "llama.embedding_length": HIDDEN,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS // 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(tokens),
        "llama.context_length": 2048,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)),
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
    }


def weights() -> dict[str, np.ndarray[Any, Any]]:
    """Return random weights under mlx-lm's names."""
    vocabulary = metadata()["llama.vocab_size"]
    shapes = {"model.embed_tokens.weight": (vocabulary, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {
            f"model.layers.{layer}.{name}.weight": shape
            for name, shape in {
                "input_layernorm": (HIDDEN,),
                "post_attention_layernorm": (HIDDEN,),
                "self_attn.q_proj": (HIDDEN, HIDDEN),
                "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
                "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
                "self_attn.o_proj": (HIDDEN, HIDDEN),
                "mlp.gate_proj": (INNER, HIDDEN),
                "mlp.up_proj": (INNER, HIDDEN),
                "mlp.down_proj": (HIDDEN, INNER),
            }.items()
        }
    random = np.random.default_rng(20)
    return {name: random.normal(0.0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def make(directory: Path, **changes: Any) -> Path:
    """Write the checkpoint, with `changes` to its config.json, and return its directory."""
    from safetensors.numpy import save_file  # comes with the mlx extra, as whoever needs a checkpoint does

    directory.mkdir()
    documents = {
        "config.json": smollm2.config(metadata(), "float32") | changes,
        "tokenizer.json": smollm2.tokenizer(metadata()),
        "tokenizer_config.json": smollm2.tokenizer_config(metadata()),
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document), encoding="utf-8")
    save_file(weights(), directory / "model.safetensors", {"format": "mlx"})
    return directory
