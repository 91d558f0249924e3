"""The tokenizer of a Hugging Face model, out of a directory on this machine; its own code is never run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibration.cache import sha256
from calibration.engine import EngineError, first_line
from traces import TraceError
from traces.importing.text_tokens import Message


class LocalTokenizer:
    """Text as the ids of one model.

    Args:
        directory: where the tokenizer's files are, as typed.

    Raises:
        EngineError: transformers is not installed, or there is no tokenizer that it can load.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        if not self._directory.is_dir():
            raise EngineError(f"--tokenizer: no such directory (got {directory!r})")
        load = _loader()
        try:
            self._tokenizer = load(str(directory), local_files_only=True, trust_remote_code=False)
        except Exception as error:
            raise EngineError(f"{directory}: not a tokenizer that can be loaded ({first_line(error)})") from error

    @property
    def ends(self) -> frozenset[int]:
        """Every id with which the model ends a reply: the tokenizer's, and those that its configuration names."""
        found = [self._tokenizer.eos_token_id]
        for name in ("config.json", "generation_config.json"):
            named = _json(self._directory / name).get("eos_token_id")
            found += named if isinstance(named, list) else [named]
        return frozenset(token for token in found if isinstance(token, int))

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Return a conversation in the model's own chat form, ready for the next answer; bare when it has none.

        Raises:
            TraceError: the model's form has no place for such a conversation.
        """
        if not self._tokenizer.chat_template:
            return self.bare("\n".join(message.text for message in messages))
        turns = [{"role": message.role, "content": message.text} for message in messages]
        try:
            return list(self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False))
        except Exception as error:  # a template is a program, and refuses in whatever way it likes
            raise TraceError(f"the model's chat form has no place for this ({first_line(error)})") from error

    def bare(self, text: str) -> list[int]:
        """Return a whole prompt as it stands, with what the model puts before every text."""
        return list(self._tokenizer.encode(text))

    def reply(self, text: str) -> list[int]:
        """Return an answer without anything around it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def provenance(self) -> dict[str, object]:
        """Return what a trace's header says about it."""
        file = self._directory / "tokenizer.json"
        name = {"tokenizer": self._directory.resolve().name}
        return {**name, "tokenizer_sha256": sha256(file)} if file.is_file() else {**name}


def _loader() -> Callable[..., Any]:
    # Without PyTorch, which no tokenizer needs, it would say on standard error that there is none.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise EngineError(
            "transformers is not installed; in the clone, pip install -c constraints.txt -e '.[mlx]'"
        ) from error
    load: Callable[..., Any] = AutoTokenizer.from_pretrained
    return load


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # most tokenizers come without either
        return {}
    return found if isinstance(found, dict) else {}
