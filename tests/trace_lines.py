"""Lines of trace files for tests to break."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from traces import TraceError

HEADER = b'{"format": "breakeven-trace/1", "model": "m"}\n'
GOOD = b'{"id": "a", "prompt": [1, 2], "reply": [3, 4], "finish": "stop"}\n'
KNOWN = "id, prompt, reply, finish, max_tokens, arrival_s, eligible, reason, pipelinable, tags, text, margins"


def line(**changes: Any) -> bytes:
    """Return the line of a good request with some values changed; ... takes a key away."""
    values: dict[str, Any] = {"id": "b", "prompt": [1, 2], "reply": [3, 4], "finish": "stop", **changes}
    return json.dumps({key: value for key, value in values.items() if value is not ...}).encode() + b"\n"


def refusal(work: Callable[[], object]) -> str:
    """Return the message of what is refused."""
    with pytest.raises(TraceError) as caught:
        work()
    return str(caught.value)
