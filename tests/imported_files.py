"""Files as other programs write them, a small one of each format, all of our own making."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.importing import Import
from traces import Request
from traces.importing.text_tokens import Message

END = 0
"""The id with which the model of `Letters` ends a reply."""


class Letters:
    """A tokenizer that anybody can follow: a letter is its code point, a message begins with its role's first one."""

    ends = frozenset({END})

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Return `u`, `a` or `s` before every message, and `a` before the answer."""
        return self.reply("".join(f"{message.role[0]}{message.text}" for message in messages) + "a")

    def bare(self, text: str) -> list[int]:
        """Return a `^` and the text."""
        return self.reply("^" + text)

    def reply(self, text: str) -> list[int]:
        """Return the text."""
        return [ord(letter) for letter in text]


def json_lines(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return an object on every line."""
    return "".join(json.dumps(found) + "\n" for found in objects)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([header, *rows])
    return file.getvalue()


def llmservingsim(requests: Iterable[Request]) -> str:
    """Return a workload of LLMServingSim."""
    return json_lines(
        {
            "input_toks": len(request.prompt),
            "output_toks": len(request.reply),
            "arrival_time_ns": int((request.arrival_s or 0) * 1e9),
            "input_tok_ids": request.prompt.tolist(),
            "output_tok_ids": request.reply.tolist(),
        }
        for request in requests
    )


def specdecode_bench(requests: Iterable[Request]) -> str:
    """Return generations of SpecDecode-Bench, with what it found out about them."""
    return json_lines(
        {
            "id": number,
            "prompt_token_ids": request.prompt.tolist(),
            "generated_token_ids": request.reply.tolist(),
            "acc_ngram": {"acc_len": [1] * len(request.reply)},
        }
        for number, request in enumerate(requests)
    )


def vllm_vcr(requests: Iterable[Request]) -> str:
    """Return a trace of vllm-vcr that was captured with token ids."""
    meta = {"meta": {"model": "m", "gpu": "g", "tp": 1}}
    return json_lines(
        [
            meta,
            *(
                {
                    "prompt_tokens": len(request.prompt),
                    "output_tokens": len(request.reply),
                    "ttft_ms": 20.0,
                    "itl_ms": [5.0] * (len(request.reply) - 1),
                    "arrival_ms": (request.arrival_s or 0) * 1e3,
                    "output_token_ids": request.reply.tolist(),
                    "finish_reason": {"stop": "stop", "length": "length", "guard": "abort"}[request.finish],
                }
                for request in requests
            ),
        ]
    )


def pairs_of_ids(requests: Iterable[Request]) -> str:
    """Return pairs of ids."""
    return json_lines({"prompt": one.prompt.tolist(), "response": one.reply.tolist()} for one in requests)


def pairs_of_ids_in_csv(requests: Iterable[Request]) -> str:
    """Return pairs of ids as a CSV file."""
    return csv_text(["n", "prompt", "response"], [[0, one.prompt.tolist(), one.reply.tolist()] for one in requests])


WITH_IDS: Mapping[str, tuple[str, str, Callable[[Iterable[Request]], str]]] = {
    "pairs": ("pairs", "mine.jsonl", pairs_of_ids),
    "pairs in CSV": ("pairs", "mine.csv", pairs_of_ids_in_csv),
    "arctic-inference": ("arctic-inference", "mine.jsonl", pairs_of_ids),
    "llmservingsim": ("llmservingsim", "mine.jsonl", llmservingsim),
    "specdecode-bench": ("specdecode-bench", "mine.jsonl", specdecode_bench),
    "vllm-vcr": ("vllm-vcr", "mine.jsonl", vllm_vcr),
}
"""Formats that hold ids: their name, a file's name, and how requests are written."""


def write(path: Path, text: str) -> str:
    """Write a file and return its path as a user types it."""
    path.write_text(text, "utf-8", newline="")
    return str(path)


def imported(source: str, *files: str, **given: Any) -> tuple[Request, ...]:
    """Return the requests that `record --from` makes of files."""
    return Import(source, files, **{"model": "m", **given}).read()[1].requests
