"""Checkpoints: which directory a `--model` means, and what makes one complete."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration import smollm2
from calibration.cache import cache_directory, sha256, smollm2_checkpoint
from calibration.engine import Engine, EngineError, Sampler

NAMES = ("smollm2",)
"""What `--model` takes besides a directory."""

DTYPES = ("q4", "bfloat16", "float32")
DEFAULT_DTYPE = "bfloat16"
"""The dtype of a named model; a directory is used as it is stored."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete mlx-lm checkpoint on this machine."""

    name: str
    """The model's name, as traces and profiles call it."""

    where: str
    """What `--model` was given."""

    directory: Path
    """Where config.json, the tokenizer and the weights are."""

    dtype: str
    """What the weights are once loaded: one of `DTYPES`, or as stored."""

    cast: str | None = None
    """The dtype the engine has to dequantise to while loading; None when the files already are what is wanted."""

    def provenance(self) -> dict[str, object]:
        """Return what a trace's header says about it; reads every weight once for the hash."""
        return {
            "model": self.name,
            "checkpoint": self.where,
            "dtype": self.dtype,
            "weights_sha256": sha256(*weight_files(self.directory)),
            "tokenizer_sha256": sha256(self.directory / "tokenizer.json"),
        }


def open_engine(where: str, dtype: str | None) -> Engine:
    """Return the MLX engine with the model that `--model` means; the first call loads mlx, which takes seconds.

    Args:
        where: as for `locate`.
        dtype: as for `locate`.

    Raises:
        EngineError: mlx is not installed, or the model cannot be found or loaded.
    """
    check(where)
    mlx_engine = _mlx()
    engine: Engine = mlx_engine.MlxEngine(locate(where, dtype, mlx_engine))
    return engine


def model_engine(model: Any, sampler: Sampler, prompt_cache: Any = None) -> Any:
    """Return a model that mlx-lm has loaded as an engine that knows no checkpoint, `mlx_engine.MlxModel`.

    Args:
        model: as mlx-lm's `load` returns it.
        sampler: how tokens are chosen.
        prompt_cache: the KV state to append to, one entry a layer; a fresh one unless given.

    Raises:
        EngineError: mlx is not installed.
    """
    engine = _mlx().MlxModel(model)
    engine.start(sampler, prompt_cache)
    return engine


def _mlx() -> Any:
    try:
        from calibration import mlx_engine
    except ModuleNotFoundError as error:
        raise EngineError("mlx is not installed; in the clone, pip install -c constraints.txt -e '.[mlx]'") from error
    except ImportError as error:
        raise EngineError(f"mlx is installed but cannot be loaded ({error})") from error
    return mlx_engine


def locate(where: str, dtype: str | None, arrays: smollm2.ArrayLibrary) -> Checkpoint:
    """Return the checkpoint that `--model` means, fetching and converting a named one the first time.

    Args:
        where: `smollm2`, or a directory; anything but exactly a name is a directory.
        dtype: one of `DTYPES`; None is bfloat16 for a named model and as stored for a directory.
        arrays: the module that knows what an array is, `calibration.mlx_engine`.

    Raises:
        EngineError: there is none, it is incomplete, or it could not be fetched or converted.
    """
    if where in NAMES:
        wanted = dtype or DEFAULT_DTYPE
        return _complete(smollm2.NAME, where, smollm2_checkpoint(cache_directory(), wanted, arrays))
    found = _local(where)
    if dtype is None or dtype == found.dtype:
        return found
    if dtype == "q4":
        raise EngineError(f"{where}: q4 takes a checkpoint that is stored in 4 bits (this one is {found.dtype})")
    return replace(found, dtype=dtype, cast=dtype)


def loaded_dtype(where: str, dtype: str | None) -> str:
    """Return the dtype that the engine of a checkpoint will have, without opening it.

    Args:
        where: as for `locate`.
        dtype: as for `locate`.

    Raises:
        EngineError: a directory that is none, or is incomplete.
    """
    return dtype or (DEFAULT_DTYPE if where in NAMES else _local(where).dtype)


def check(where: str) -> None:
    """Refuse a directory that cannot be what `--model` means; a named model is looked for when it is opened.

    Raises:
        EngineError: there is none, or it is incomplete.
    """
    if where not in NAMES:
        _local(where)


def _local(where: str) -> Checkpoint:
    directory = Path(where)
    if not where or not directory.is_dir():
        raise EngineError(f"no model named {where!r}, nor such a directory (named: {', '.join(NAMES)})")
    return _complete(directory.resolve().name, where, directory)


def _complete(name: str, where: str, directory: Path) -> Checkpoint:
    config = read_config(directory)
    weight_files(directory)
    return Checkpoint(name, where, directory, stored_dtype(config))


def read_config(directory: Path) -> dict[str, Any]:
    """Return config.json of a checkpoint that has a tokenizer and asks for no code of its own.

    Raises:
        EngineError: a file is missing or is not JSON, or the checkpoint wants its own code run.
    """
    for name in ("config.json", "tokenizer.json"):
        if not (directory / name).is_file():
            raise EngineError(f"{directory}: not a complete mlx-lm checkpoint (no {name})")
    config = _read_json(directory / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise EngineError(f"{directory / 'config.json'}: not a model's configuration (no model_type)")
    if "model_file" in config:
        raise EngineError(
            f"{directory}: wants its own code run, which is refused (model_file {config['model_file']!r})"
        )
    return config


def weight_files(directory: Path) -> list[Path]:
    """Return the safetensors files of a checkpoint by name.

    Raises:
        EngineError: there are none, or one that the index names is missing.
    """
    found = sorted(directory.glob("model*.safetensors"))
    if not found:
        raise EngineError(f"{directory}: not a complete mlx-lm checkpoint (no model*.safetensors)")
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        named = set(_read_json(index).get("weight_map", {}).values())
        missing = sorted(named - {path.name for path in found})
        if missing:
            raise EngineError(f"{directory}: not a complete mlx-lm checkpoint (no {missing[0]})")
    return found


def stored_dtype(config: dict[str, Any]) -> str:
    """Return a short word for what the weights of a checkpoint are.

    >>> stored_dtype({"quantization": {"group_size": 64, "bits": 4}})
    'q4'
    >>> stored_dtype({"torch_dtype": "bfloat16"})
    'bfloat16'
    """
    quantization = config.get("quantization") or config.get("quantization_config")
    if isinstance(quantization, dict):
        return f"q{quantization['bits']}" if "bits" in quantization else "quantised"
    return str(config.get("torch_dtype") or config.get("dtype") or "unknown")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EngineError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(document, dict):
        raise EngineError(f"{path}: must be a JSON object")
    return document
