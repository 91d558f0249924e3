"""What an importer asks of a tokenizer, whoever has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Message(NamedTuple):
    """One turn of a conversation."""

    role: str
    """`system`, `user` or `assistant`."""
    text: str


class TextTokens(Protocol):
    """Text as the ids of one model."""

    @property
    def ends(self) -> frozenset[int]:
        """Every id with which the model ends a reply."""

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Return a conversation in the model's own chat form, ready for the next answer.

        Raises:
            TraceError: the form has no place for such a conversation.
        """

    def bare(self, text: str) -> list[int]:
        """Return a whole prompt as it stands, with what the model puts before every text."""

    def reply(self, text: str) -> list[int]:
        """Return an answer without anything around it."""
