"""What somebody was told and said, as another program kept it, and the request that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from traces.errors import TraceError
from traces.fields import Finish, Tokens
from traces.importing.text_tokens import Message, TextTokens
from traces.trace import Request


class Ids(NamedTuple):
    """A prompt and its reply as token ids."""

    prompt: Sequence[int] | Tokens
    reply: Sequence[int]


class Text(NamedTuple):
    """A prompt and the answer to it as text."""

    prompt: Sequence[Message] | str
    """A conversation to put in the model's chat form, or all that the model was fed."""
    reply: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt and its reply in somebody else's file."""

    where: str
    """File and line, as a message begins."""
    id: str
    """Unique in its file; fit to name one."""
    said: Ids | Text
    finish: Finish | None = None
    """What ended the reply; None where the file does not say."""
    arrival_s: float | None = None
    """When it arrived, on any clock; None where the file does not say."""
    tags: tuple[str, ...] = ()


def request(exchange: Exchange, tokenizer: TextTokens | None, max_tokens: int | None) -> Request | None:
    """Return the request that an exchange becomes, or None for a reply without a token.

    An id with which the model ends a reply is taken off its end and says `stop`. Where neither that nor the file says
    what ended a reply, it was the limit if the reply is as long as that, else the model.

    Args:
        exchange: what was kept.
        tokenizer: the model's; text needs one, and ids are only looked at for how they end.
        max_tokens: the limit of every reply, in tokens.

    Raises:
        TraceError: with file and line, an exchange that is no request.
    """
    try:
        ids, text = _ids(exchange.said, tokenizer)
        return _request(exchange, ids, text, tokenizer, max_tokens)
    except TraceError as error:
        raise TraceError(f"{exchange.where}: {error}") from None


def by_arrival(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return exchanges as they arrived, in seconds after the first; as they came where one has no arrival."""
    known = [exchange.arrival_s for exchange in exchanges if exchange.arrival_s is not None]
    if len(known) < len(exchanges):
        return [replace(exchange, arrival_s=None) for exchange in exchanges]
    first_s = min(known, default=0.0)
    moved = [replace(exchange, arrival_s=at_s - first_s) for exchange, at_s in zip(exchanges, known, strict=True)]
    return sorted(moved, key=lambda exchange: exchange.arrival_s or 0.0)


def _ids(said: Ids | Text, tokenizer: TextTokens | None) -> tuple[Ids, str | None]:
    if isinstance(said, Ids):
        return said, None
    if tokenizer is None:
        raise TraceError(
            "holds text, which takes the model's tokenizer (got none); name its directory with --tokenizer"
        )
    prompt = tokenizer.bare(said.prompt) if isinstance(said.prompt, str) else tokenizer.chat(said.prompt)
    return Ids(prompt, tokenizer.reply(said.reply)), said.reply


def _request(
    exchange: Exchange, ids: Ids, text: str | None, tokenizer: TextTokens | None, max_tokens: int | None
) -> Request | None:
    prompt, reply = ids
    finish = exchange.finish
    # A reply that the limit ended may end in such an id too, when the engine was told to go on.
    if finish != "length" and tokenizer and reply and type(reply[-1]) is int and reply[-1] in tokenizer.ends:
        reply, finish = reply[:-1], "stop"
    if not reply:
        return None
    if finish is None:
        finish = "length" if len(reply) == max_tokens else "stop"
    return Request.of(exchange.id, prompt, reply, finish, max_tokens, exchange.arrival_s, tags=exchange.tags, text=text)
