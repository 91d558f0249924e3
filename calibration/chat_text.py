"""Text and ids, as a checkpoint's own tokenizer has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ChatText:
    """The half of an engine that is about text; whoever inherits it sets the tokenizer that mlx-lm loaded."""

    _tokenizer: Any

    @property
    def eos(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""
        return frozenset(self._tokenizer.eos_token_ids)

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of a user's message in the model's own chat form, or bare when it has none."""
        if not self._tokenizer.has_chat_template:
            return list(self._tokenizer.encode(prompt))
        messages = [{"role": "user", "content": prompt}]
        return list(self._tokenizer.apply_chat_template(messages, add_generation_prompt=True))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`, special ones spelled out."""
        return str(self._tokenizer.decode(list(tokens)))
