"""What `record` prints: one document, and the same as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.recording import Recorded


def document(header: Mapping[str, object], recording: Recorded, paths: Sequence[str]) -> dict[str, Any]:
    """Return the summary of a recording.

    Args:
        header: the traces' header.
        recording: what was recorded.
        paths: the file of each request, in their order.
    """
    return {
        "header": dict(header),
        "requests": [
            {
                "id": request.id,
                "trace": path,
                "prompt_tokens": len(request.prompt),
                "reply_tokens": len(request.reply),
                "finish": request.finish,
                "max_tokens": request.max_tokens,
                "tags": list(request.tags),
                "text": request.text,
            }
            for request, path in zip(recording.requests, paths, strict=True)
        ],
        "silent": list(recording.silent),
        "interrupted": recording.interrupted,
    }


def text(document: Mapping[str, Any]) -> str:
    """Return aligned lines: the model, the sampler, one line per reply, and what it comes to."""
    header, requests = document["header"], document["requests"]
    width = max([len("sampler"), *(len(request["id"]) for request in requests)])
    origin = header.get("arrivals", header)
    if "files" in origin:
        lines = [
            f"{'model':{width}}  {header['model']}",
            f"{'from':{width}}  {origin['source']} {', '.join(origin['files'])}",
        ]
    else:
        lines = [
            f"{'model':{width}}  {header['model']} {header['dtype']} on {header['device']} "
            f"(mlx {header['mlx']}, mlx-lm {header['mlx_lm']})",
            f"{'sampler':{width}}  {_sampler(header['sampler'])}",
        ]
    lines += [
        f"{request['id']:{width}}  {request['reply_tokens']:5,} tokens after {request['prompt_tokens']:5,}, "
        f"{request['finish']:6}  {request['trace']}"
        for request in requests
    ]
    files = len({request["trace"] for request in requests})
    total = sum(request["reply_tokens"] for request in requests)
    lines.append(
        f"{'kept':{width}}  {_count(len(requests), 'reply', 'replies')} with {_count(total, 'token')} "
        f"in {_count(files, 'trace')}"
    )
    return "\n".join(lines)


def _sampler(sampler: Mapping[str, Any]) -> str:
    if sampler["kind"] == "greedy":
        return "greedy"
    return f"temperature {sampler['temperature']:g}, drawn by seed {sampler['seed']} and position"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
