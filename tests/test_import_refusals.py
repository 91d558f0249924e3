"""Files that are not what they should be: one line with file, line, what is wrong and what was got."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.imported_files import imported, write
from tests.trace_lines import refusal
from traces.importing.formats import ARRIVALS, EXCHANGES, PAIRS
from traces.importing.two_columns import COLUMNS

IDS = '{"prompt": [1], "response": [2]}\n'
FLAT = '{"input_tok_ids": [1], "output_tok_ids": [2], "arrival_time_ns": 0}\n'
VCR = '{"prompt_tokens": 1, "output_tokens": 1, "output_token_ids": [3]}\n'
AZURE = "TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,1\n"


def refused(source: str, path: Path, text: str) -> str:
    file = write(path, text)
    if source in ARRIVALS:
        message = refusal(lambda: list(ARRIVALS[source](file)))
    else:
        message = refusal(lambda: imported(source, file))
    return message.removeprefix(f"{path}:")


@pytest.mark.parametrize("source", ["pairs", "arctic-inference", *EXCHANGES, "mooncake"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " holds no objects"),
        ("\n \n", " holds no objects"),
        ("[]", " holds no objects"),
        ("7\n", "1: must be an object (got 7)"),
        ("\n{\n", "2: not JSON: expecting property name enclosed in double quotes at column 2 (got '')"),
        ('{"a": NaN}', "1: not JSON: a number must be finite (got NaN)"),
        ('{"a": 1, "a": 2}', "1: key 'a' must stand once in an object (got it twice)"),
        ("[7]", "1: must be an object (got 7)"),
    ],
)
def test_a_file_that_is_no_json_is_refused(source: str, text: str, message: str, tmp_path: Path) -> None:
    assert refused(source, tmp_path / "f.jsonl", text) == message


def test_the_place_of_a_mistake_in_a_list_of_many_lines_is_told(tmp_path: Path) -> None:
    good = json.dumps(json.loads(IDS), indent=1)

    def inside(tail: str) -> str:
        return refused("pairs", tmp_path / "f.json", f"[\n{good},\n{tail}")

    lines = good.count("\n") + 1
    assert inside('{"prompt": [1]}]') == f"{2 + lines}: must have 'response' (got prompt)"
    assert inside("{\n 7}]") == (
        f"{2 + lines}: not JSON: expecting property name enclosed in double quotes at column 2 of line {3 + lines} "
        "(got '7}]')"
    )
    assert inside(good + "\n {}]") == f"{2 * lines + 2}: a list must go on with ',' or end with ']' (got '{{}}]')"
    assert inside(good) == f"{2 * lines + 1}: a list must go on with ',' or end with ']' (got '')"
    assert inside(good + "] more") == f"{2 * lines + 1}: nothing may follow the list (got 'more')"


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        (
            "pairs",
            IDS + '{"prompt": "a", "response": "b"}',
            "2: prompt must be a list of token ids, as the first prompt is (got 'a')",
        ),
        ("pairs", '{"prompt": "a", "response": [1]}', "1: response must be a text, as the first prompt is (got [1])"),
        ("pairs", '{"prompt": null, "response": "b"}', "1: must have 'prompt' (got null)"),
        (
            "pairs",
            '{"prompt": "a", "response": "b"}',
            "1: holds text, which takes the model's tokenizer (got none); name its directory with --tokenizer",
        ),
        (
            "arctic-inference",
            '{"prompt": [-1], "response": [1]}',
            "1: prompt[0] must be an integer from 0 to 2147483647 (got -1)",
        ),
        ("sharegpt", '[{"id": "a"}]', "1: must have 'conversations' (got id)"),
        ("sharegpt", '[{"conversations": {}}]', "1: conversations must be a list (got {})"),
        ("sharegpt", '[{"conversations": [1]}]', "1: conversations must hold objects (got 1)"),
        (
            "sharegpt",
            '[\n{"conversations": [{"from": "narrator", "value": ""}]}]',
            "2: from must be one of system, human, user, gpt, chatgpt, assistant, bing, bard (got 'narrator')",
        ),
        ("sharegpt", '[{"conversations": [{"from": "gpt", "value": 1}]}]', "1: value must be a string (got 1)"),
        (
            "llmservingsim",
            FLAT + '{"input_toks": 3, "output_toks": 2, "arrival_time_ns": 0}',
            "2: must have 'input_tok_ids' (got input_toks, output_toks, arrival_time_ns)",
        ),
        (
            "llmservingsim",
            '{"input_tok_ids": [1], "output_tok_ids": [2]}',
            "1: must have 'arrival_time_ns' (got input_tok_ids, output_tok_ids)",
        ),
        ("llmservingsim", FLAT.replace(": 0", ": -1"), "1: arrival_time_ns must be a finite number >= 0 (got -1)"),
        (
            "llmservingsim",
            FLAT.replace("}", ', "input_toks": 2}'),
            "1: input_tok_ids must be as many as input_toks says (got 1 for 2)",
        ),
        ("llmservingsim", '{"sub_requests": [3]}', "1: sub_requests must be objects (got 3)"),
        (
            "specdecode-bench",
            '{"prompt_token_ids": [1], "generated_token_ids": 2}',
            "1: generated_token_ids must be a list (got 2)",
        ),
        (
            "specdecode-bench",
            '{"prompt_token_ids": [], "generated_token_ids": [2]}',
            "1: prompt must hold at least one token (got [])",
        ),
        (
            "vllm-vcr",
            '{"meta": {}}\n{"prompt_tokens": 1, "output_tokens": 1}',
            "2: must have 'output_token_ids', which a capture has on request (got prompt_tokens, output_tokens)",
        ),
        (
            "vllm-vcr",
            VCR.replace("[3]", "[3, 4]"),
            "1: output_token_ids must be as many as output_tokens says (got 2 for 1)",
        ),
        (
            "vllm-vcr",
            VCR.replace('s": 1,', 's": 0,', 1),
            "1: prompt_tokens must be an integer from 1 to 4194304 (got 0)",
        ),
        (
            "vllm-vcr",
            VCR.replace("}", ', "finish_reason": "bored"}'),
            "1: finish_reason must be one of stop, length, abort, error, repetition (got 'bored')",
        ),
        ("mooncake", '{"timestamp": 1}\n{"timestamp": "2"}', "2: timestamp must be a finite number >= 0 (got '2')"),
        ("mooncake", '{"time": 1}', "1: must have 'timestamp' (got time)"),
    ],
)
def test_what_a_format_needs_is_missed(source: str, text: str, message: str, tmp_path: Path) -> None:
    assert refused(source, tmp_path / "f.jsonl", text) == message


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("azure", "", " holds no rows"),
        ("azure", "TIMESTAMP\n", " holds no rows"),
        ("azure", "when,what\n1,2\n", "1: has no column 'TIMESTAMP' (got when, what)"),
        (
            "azure",
            AZURE + "\nyesterday,1\n",
            "4: TIMESTAMP must be a date and time, as 2023-11-16 18:17:03.97 (got 'yesterday')",
        ),
        ("azure", AZURE + "2023-11-16 18:17:03\n", "3: must have 2 cells (got 1)"),
        (
            "pairs",
            'prompt,response\n"[1]","[2]"\n"a\nb",c',
            "3: prompt must be a list of token ids, as the first prompt is (got 'a\\nb')",
        ),
        ("pairs", 'prompt,response\n"[1]","[2', "2: not CSV (unexpected end of data)"),
        ("pairs", "prompt,reply\n", "1: has no column 'response' (got prompt, reply)"),
    ],
)
def test_a_table_that_is_none_is_refused(source: str, text: str, message: str, tmp_path: Path) -> None:
    assert refused(source, tmp_path / "f.csv", text) == message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    binary, cut = tmp_path / "binary.json", tmp_path / "cut.json"
    binary.write_bytes(b"{}\n\xff")
    cut.write_bytes(gzip.compress(IDS.encode() * 9)[:-9])

    assert refusal(lambda: imported("pairs", "/no/such")) == "/no/such: cannot be read (No such file or directory)"
    assert refusal(lambda: imported("pairs", str(binary))) == f"{binary}:2: not UTF-8 (got 0xff)"
    assert refusal(lambda: imported("pairs", str(cut))).startswith(f"{cut}: the gzip data is cut or corrupt (")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    first, second = write(tmp_path / "f.jsonl", IDS), write(tmp_path / "sub" / "f.json", f"\n{IDS}")

    assert refusal(lambda: imported("pairs", first, second)) == (
        f"{second}:2: a request's id is its file's stem and a number, and 'f-1' is taken by {first}:1; "
        "rename one of the files"
    )


def test_a_limit_that_a_reply_exceeds_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", IDS + '{"prompt": [1], "response": [2, 3]}')

    assert refusal(lambda: imported("pairs", file, max_tokens=1)) == (
        f"{file}:2: max_tokens must not be below the reply's length (got 1 for 2 tokens)"
    )


def test_every_format_is_tried_here() -> None:
    assert {*PAIRS, *EXCHANGES, *ARRIVALS} == {
        "pairs",
        "arctic-inference",
        "sharegpt",
        "llmservingsim",
        "specdecode-bench",
        "vllm-vcr",
        "mooncake",
        "azure",
    }
    assert COLUMNS == ("prompt", "response")
