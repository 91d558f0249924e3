"""Text and ids, as a checkpoint's own tokenizer has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any


class ChatText:
    """The half of an engine that is about text; whoever inherits it sets the tokenizer that mlx-lm loaded."""

    _tokenizer: Any

    @property
    def eos(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""
        return frozenset(self._tokenizer.eos_token_ids)

    def encode(self, *turns: str) -> list[int]:
        """Return the ids of what was said in turn in the model's own chat form, or bare when it has none."""
        if not self._tokenizer.has_chat_template:
            return list(self._tokenizer.encode("\n".join(turns)))
        messages = [
            {"role": role, "content": text} for role, text in zip(cycle(("user", "assistant")), turns, strict=False)
        ]
        return list(self._tokenizer.apply_chat_template(messages, add_generation_prompt=True))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`, special ones spelled out."""
        return str(self._tokenizer.decode(list(tokens)))
