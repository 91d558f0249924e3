"""What a line of a trace file may not hold, and the words in which it is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trace_lines import GOOD, HEADER, KNOWN, line, refusal
from traces import load

FIGURES = f"1{'0' * 17}...{'0' * 19}"
"""How a long power of ten is shown."""


def token_message(got: str) -> str:
    return f"prompt[1] must be an integer from 0 to 2147483647 (got {got})"


LINES = {
    "no JSON": (b"id: a\n", "not JSON: expecting value at column 1 (got 'id: a')"),
    "a value missing": (b'{"id": }\n', "not JSON: expecting value at column 8 (got '}')"),
    "a comma missing": (
        b'{"id": "b" "reply": [1]}\n',
        "not JSON: expecting ',' delimiter at column 12 (got '\"reply\": [1]}')",
    ),
    "a string without end": (b'{"id": "b\n', "not JSON: unterminated string starting at column 8 (got '\"b')"),
    "two objects": (b"{} {}\n", "not JSON: extra data at column 4 (got '{}')"),
    "a cut line with its newline": (
        b'{"id": "b", "prompt": [1,\n',
        "not JSON: expecting value at column 26 (got '')",
    ),
    "a raw tab in a string": (b'{"id": "\t"}\n', "not JSON: invalid control character at column 9 (got '\\t\"}')"),
    "Latin-1": (b'{"id": "caf\xe9"}\n', "not UTF-8 (got 0xe9 at byte 12)"),
    "a surrogate encoded as UTF-8": (b'{"id": "\xed\xa0\x80"}\n', "not UTF-8 (got 0xed at byte 9)"),
    "an empty line": (b"\n", "a line must hold a JSON object (got the blank line '')"),
    "spaces": (b" \t\r\n", "a line must hold a JSON object (got the blank line ' \\t\\r')"),
    "no newline": (
        line()[:-1],
        'the last line must end with a newline; the file is cut (it ends in \'], "finish": "stop"}\')',
    ),
    "half a line": (
        line()[:30],
        "the last line must end with a newline; the file is cut (it ends in ', \"prompt\": [1, 2], ')",
    ),
    "a list": (b"[[1], [2]]\n", "a request must be an object (got [[1], [2]])"),
    "a number": (b"7\n", "a request must be an object (got 7)"),
    "nothing in it": (b"{}\n", "missing key 'id', 'prompt', 'reply', 'finish' (got no keys)"),
    "no reply": (line(reply=...), "missing key 'reply' (got id, prompt, finish)"),
    "no id and no finish": (line(id=..., finish=...), "missing key 'id', 'finish' (got prompt, reply)"),
    "a misspelt key": (line(arival_s=1), f"unknown key 'arival_s' (known: {KNOWN}); did you mean 'arrival_s'?"),
    "a foreign key": (line(temperature=0), f"unknown key 'temperature' (known: {KNOWN})"),
    "a key twice": (
        b'{"id": "b", "prompt": [1], "reply": [2], "finish": "stop", "id": "c"}\n',
        "key 'id' must stand once in an object (got it twice)",
    ),
    "a key twice, escaped": (
        b'{"id": "b", "\\u0069d": "b"}\n',
        "key 'id' must stand once in an object (got it twice)",
    ),
    "null for an optional key": (
        line(max_tokens=None),
        "max_tokens must have a value (got null); leave the key out",
    ),
    "NaN": (line(arrival_s=float("nan")), "not JSON: a number must be finite (got NaN)"),
    "Infinity": (line(margins=[float("inf"), 1]), "not JSON: a number must be finite (got Infinity)"),
    "minus Infinity as a token": (
        line(prompt=[float("-inf")]),
        "not JSON: a number must be finite (got -Infinity)",
    ),
    "an id again": (line(id="a"), "id must be unique in its trace (got 'a' again)"),
    "an empty id": (line(id=""), "id must be a non-empty string (got '')"),
    "a number as id": (line(id=7), "id must be a non-empty string (got 7)"),
    "null as id": (line(id=None), "id must be a non-empty string (got None)"),
    "an id UTF-8 cannot hold": (
        line(id="x\ud83d"),
        "id must be text that UTF-8 can hold (got the lone surrogate '\\ud83d')",
    ),
    "a negative token": (line(prompt=[1, -4]), token_message("-4")),
    "a token above int32": (line(prompt=[1, 2**31]), token_message("2147483648")),
    "a token above int64": (line(prompt=[1, 2**63]), token_message("9223372036854775808")),
    "a token of a hundred digits": (
        line(prompt=[1, 10**99]),
        token_message(FIGURES),
    ),
    "true as a token": (line(prompt=[1, True]), token_message("True")),
    "1.0 as a token": (line(prompt=[1, 1.0]), token_message("1.0")),
    "a string as a token": (line(prompt=[1, "2"]), token_message("'2'")),
    "null as a token": (line(prompt=[1, None]), token_message("None")),
    "a list as a token": (line(prompt=[1, [2]]), token_message("[2]")),
    "an object as a token": (line(prompt=[1, {"t": 2}]), token_message("{'t': 2}")),
    "a bad reply token": (line(reply=[-1]), "reply[0] must be an integer from 0 to 2147483647 (got -1)"),
    "an empty prompt": (line(prompt=[]), "prompt must hold at least one token (got [])"),
    "an empty reply": (line(reply=[]), "reply must hold at least one token (got [])"),
    "text as prompt": (line(prompt="hello"), "prompt must be a list of token ids (got 'hello')"),
    "an object as reply": (line(reply={"0": 1}), "reply must be a list of token ids (got {'0': 1})"),
    "null as reply": (line(reply=None), "reply must be a list of token ids (got None)"),
    "an unknown finish": (line(finish="eos"), "finish must be one of stop, length, guard (got 'eos')"),
    "a misspelt finish": (
        line(finish="lenght"),
        "finish must be one of stop, length, guard (got 'lenght'); did you mean 'length'?",
    ),
    "a finish of another type": (line(finish=["stop"]), "finish must be one of stop, length, guard (got ['stop'])"),
    "a limit below the reply": (
        line(max_tokens=1),
        "max_tokens must not be below the reply's length (got 1 for 2 tokens)",
    ),
    "a limit below a guarded reply": (
        line(finish="guard", max_tokens=1),
        "max_tokens must not be below the reply's length (got 1 for 2 tokens)",
    ),
    "a limit above a reply it ended": (
        line(finish="length", max_tokens=3),
        "max_tokens must be the reply's length when finish is 'length' (got 3 for 2 tokens)",
    ),
    "a limit below a reply it ended": (
        line(finish="length", max_tokens=1),
        "max_tokens must be the reply's length when finish is 'length' (got 1 for 2 tokens)",
    ),
    "a limit of 0": (line(max_tokens=0), "max_tokens must be an integer >= 1 (got 0)"),
    "a negative limit": (line(max_tokens=-2), "max_tokens must be an integer >= 1 (got -2)"),
    "a float as limit": (line(max_tokens=2.0), "max_tokens must be an integer >= 1 (got 2.0)"),
    "true as limit": (line(reply=[3], max_tokens=True), "max_tokens must be an integer >= 1 (got True)"),
    "a string as limit": (line(max_tokens="2"), "max_tokens must be an integer >= 1 (got '2')"),
    "a negative arrival": (line(arrival_s=-0.5), "arrival_s must be a finite number >= 0 (got -0.5)"),
    "true as arrival": (line(arrival_s=True), "arrival_s must be a finite number >= 0 (got True)"),
    "a string as arrival": (line(arrival_s="0"), "arrival_s must be a finite number >= 0 (got '0')"),
    "an arrival above the floats": (
        line(arrival_s=0).replace(b": 0", b": 1e999"),
        "arrival_s must be a finite number >= 0 (got inf)",
    ),
    "an integer arrival above the floats": (
        line(arrival_s=10**400),
        f"arrival_s must be a finite number >= 0 (got {FIGURES})",
    ),
    "1 as eligible": (line(eligible=1), "eligible must be true or false (got 1)"),
    "null as eligible": (line(eligible=None), "eligible must have a value (got null); leave the key out"),
    "a string as pipelinable": (line(pipelinable="no"), "pipelinable must be true or false (got 'no')"),
    "a reason of another type": (line(eligible=False, reason=3), "reason must be a string (got 3)"),
    "a reason without a need": (line(reason="sampled"), "reason needs eligible to be false (got 'sampled')"),
    "a string as tags": (line(tags="code"), "tags must be a list of strings (got 'code')"),
    "a number as tag": (line(tags=["code", 7]), "tags[1] must be a string (got 7)"),
    "text of another type": (line(text=["hello"]), "text must be a string (got ['hello'])"),
    "text UTF-8 cannot hold": (
        line(text="x\ud800"),
        "text must be text that UTF-8 can hold (got the lone surrogate '\\ud800')",
    ),
    "too few margins": (line(margins=[0.5]), "margins must hold one number per reply token (got 1 for 2)"),
    "no margins": (line(margins=[]), "margins must hold one number per reply token (got 0 for 2)"),
    "a number as margins": (line(margins=0.5), "margins must be a list of numbers (got 0.5)"),
    "a negative margin": (line(margins=[1, -0.25]), "margins[1] must be a finite number >= 0 (got -0.25)"),
    "true as margin": (line(margins=[True, 1]), "margins[0] must be a finite number >= 0 (got True)"),
    "null as margin": (line(margins=[1, None]), "margins[1] must be a finite number >= 0 (got None)"),
    "a string as margin": (line(margins=[1, "1"]), "margins[1] must be a finite number >= 0 (got '1')"),
    "a margin above float32": (line(margins=[1, 1e39]), "margins[1] must be a finite number >= 0 (got 1e+39)"),
    "an integer margin above the floats": (
        line(margins=[10**400, 1]),
        f"margins[0] must be a finite number >= 0 (got {FIGURES})",
    ),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("content", "message"), LINES.values(), ids=LINES)
def test_a_bad_line_is_refused_by_number(
    tmp_path: Path, pack: Callable[[bytes], bytes], content: bytes, message: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(pack(HEADER + GOOD + content))

    assert refusal(lambda: load(path)) == f"{path}:3: {message}"
