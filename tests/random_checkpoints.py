"""Random checkpoints of mlx-lm's own model types, small enough that every test can make its own."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from calibration import smollm2

TOKENS = [f"<{name}>" for name in ("end", "start", "stop")] + [chr(0x100 + place) for place in range(253)]

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
}
SMALL_LLAMA = LLAMA | {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 4096,
}
SLIDING = {
    "model_type": "gemma3_text",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "sliding_window": 32,
    "sliding_window_pattern": 2,
}
SLIDING_LLAMA = LLAMA | {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 48}
TWO_STATES = {
    "model_type": "deepseek_v32",
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_topk": 32,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "max_position_embeddings": 512,
}
"""Every layer keeps two KV states beside each other, in a `CacheList`."""
RECURRENT = {
    "model_type": "mamba",
    "hidden_size": 64,
    "intermediate_size": 128,
    "state_size": 8,
    "num_hidden_layers": 2,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_rank": 4,
}


def make(directory: Path, config: dict[str, Any] = LLAMA, *, scale: float = 0.3) -> Path:
    """Write a checkpoint of float32 weights drawn with one seed, and return its directory.

    Args:
        directory: made here.
        config: mlx-lm's own, without the vocabulary.
        scale: standard deviation of the weights; a random model of small ones repeats itself.
    """
    import mlx.core as mx  # comes with the mlx extra, as whoever needs a checkpoint does
    from mlx.utils import tree_flatten

    config = {"vocab_size": len(TOKENS), "eos_token_id": 0, "torch_dtype": "float32", **config}
    module = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = module.Model(module.ModelArgs.from_dict(config))
    mx.random.seed(20)
    named: Any = tree_flatten(model.parameters())
    weights = {name: mx.random.normal(array.shape) * scale for name, array in named}
    directory.mkdir()
    documents: dict[str, Any] = {
        "config.json": config,
        "tokenizer.json": smollm2.tokenizer(
            {
                "tokenizer.ggml.tokens": TOKENS,
                "tokenizer.ggml.token_type": [3, 3, 3] + [1] * 253,
                "tokenizer.ggml.merges": [],
            }
        ),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": TOKENS[0]},
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document), encoding="utf-8")
    mx.save_safetensors(str(directory / "model.safetensors"), weights, metadata={"format": "mlx"})
    return directory
