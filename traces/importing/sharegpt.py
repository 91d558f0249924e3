"""Conversations as ShareGPT has them: a list of `{"id", "conversations": [{"from", "value"}, ...]}`.

Every answer becomes a request whose prompt is the conversation up to it. What comes before the first word of a user is
passed over, unless it is the system's: the collection holds pieces of long conversations, and nothing says what such
an answer was to.
"""

from __future__ import annotations

from collections.abc import Iterator

from traces.errors import TraceError, shown
from traces.importing import keys
from traces.importing.entries import Entry, each
from traces.importing.exchange import Exchange, Text
from traces.importing.json_values import objects
from traces.importing.text_tokens import Message

ROLES = {
    "system": "system",
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "assistant", "bing", "bard"), "assistant"),
}
"""Who speaks, by the word in `from`."""


def read(file: str) -> Iterator[Exchange]:
    """Yield the answers of a file.

    Raises:
        TraceError: with file and line, what is no conversation.
    """
    return each(file, objects(file), _answers)


def _answers(entry: Entry) -> Iterator[Exchange]:
    so_far: list[Message] = []
    answers = 0
    for message in map(_message, keys.listed(entry.values, "conversations")):
        asked = any(earlier.role == "user" for earlier in so_far)
        if message.role == "assistant":
            if not asked:
                continue
            answers += 1
            yield Exchange(entry.where, f"{entry.name}-{answers}", Text(tuple(so_far), message.text))
        so_far.append(message)


def _message(found: object) -> Message:
    if not isinstance(found, dict):
        raise TraceError(f"conversations must hold objects (got {shown(found)})")
    role = keys.text(found, "from")
    if role not in ROLES:
        raise TraceError(f"from must be one of {', '.join(ROLES)} (got {shown(role)})")
    return Message(ROLES[role], keys.text(found, "value"))
