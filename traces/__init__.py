"""What was said: recorded completions as token ids, their file format, and the recordings that ship with it.

A trace is JSON Lines in UTF-8, plain or gzip: a header, then one request a line::

    {"format": "breakeven-trace/1", "model": "SmolLM2-135M-Instruct"}
    {"id": "greeting", "prompt": [1, 2, 3], "reply": [4, 5], "finish": "stop"}
"""

from __future__ import annotations

from traces.errors import TraceError
from traces.fields import Finish
from traces.reader import TraceReader, load, open_trace
from traces.shipped import expand, find, names
from traces.trace import Request, Trace
from traces.writer import write

__all__ = [
    "Finish",
    "Request",
    "Trace",
    "TraceError",
    "TraceReader",
    "expand",
    "find",
    "load",
    "names",
    "open_trace",
    "write",
]
