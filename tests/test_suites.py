"""The shipped suites, and what is refused as one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from calibration import suites
from calibration.suites import SuiteError


def test_the_basic_suite_has_its_eight_prompts_with_tags() -> None:
    basic = suites.load("basic")

    ids = [prompt.id for prompt in basic.prompts]
    assert ids == ["copy", "edit_code", "edit_json", "summary", "email", "story", "chat", "long_copy"]
    assert all(prompt.tags for prompt in basic.prompts)


def test_the_chat_suite_has_forty_questions_of_up_to_256_tokens() -> None:
    chat = suites.load("chat")

    assert len(chat.prompts) == 40
    assert {(prompt.tags, prompt.max_tokens) for prompt in chat.prompts} == {(("chat",), 256)}


def test_the_tuning_suite_has_six_prompts_of_each_of_ten_categories_two_of_them_held_out() -> None:
    tuning = suites.load("tuning")

    categories = Counter(prompt.tags[0] for prompt in tuning.prompts)
    held_out = Counter(prompt.tags[0] for prompt in tuning.prompts if "held-out" in prompt.tags)
    assert len(categories) == 10
    assert set(categories.values()) == {6}
    assert held_out == dict.fromkeys(categories, 2)
    assert {prompt.max_tokens for prompt in tuning.prompts} == {400}
    assert {len(prompt.turns) for prompt in tuning.prompts if prompt.tags[0] == "turns"} == {3, 5}


def test_what_is_held_out_quotes_nothing_that_is_tuned_on() -> None:
    tuning = suites.load("tuning")
    long = [(prompt, line) for prompt in tuning.prompts for text in prompt.turns for line in text.splitlines()]
    splits: dict[str, set[bool]] = {}
    for prompt, line in long:
        if len(line) > 60:
            splits.setdefault(line, set()).add("held-out" in prompt.tags)

    assert [line for line, found in splits.items() if len(found) > 1] == []


SUITE_HEAD = '{"format": "breakeven-suite/1", "prompts": '


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "format must be 'breakeven-suite/1' (got 'list')"),
        ('{"format": 2}', "format must be 'breakeven-suite/1' (got 2)"),
        ('{"format": "breakeven-suite/1"}', "suite: no 'prompts'"),
        (SUITE_HEAD + "[]}", "prompts must be a list with at least one entry"),
        (SUITE_HEAD + '[{"id": "a"}]}', "prompt 1: no 'prompt'"),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": " "}]}',
            "prompt 1: prompt must be a text that is not empty, or a list of such (got ' ')",
        ),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": ["b", 1, "c"]}]}',
            "prompt 1: prompt must be a text that is not empty, or a list of such (got 1)",
        ),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": ["b", "c"]}]}',
            "prompt 1: prompt must be of an odd number of turns, the user's first and last (got 2)",
        ),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": "b", "stop": 1}]}',
            "prompt 1: unknown key 'stop' (known: id, max_tokens, prompt, tags)",
        ),
        (
            SUITE_HEAD + '[{"id": "../a", "prompt": "b"}]}',
            "prompt 1: id must be letters, digits, '_', '-' or '.', a letter or digit first (got '../a')",
        ),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": "b", "max_tokens": true}]}',
            "prompt 1: max_tokens must be an integer >= 1 (got True)",
        ),
        (SUITE_HEAD + '[{"id": "a", "prompt": "b", "tags": "c"}]}', "prompt 1: tags must be a list (got 'c')"),
        (SUITE_HEAD + '[{"id": "a", "prompt": "b", "tags": [1]}]}', "prompt 1: tags must be words (got [1])"),
        (
            SUITE_HEAD + '[{"id": "a", "prompt": "b"}, {"id": "a", "prompt": "c"}]}',
            "prompt 2: id 'a' is taken by an earlier one",
        ),
        (SUITE_HEAD + '[{"id": "a", "id": "b"}]}', "key 'id' appears twice in one object"),
    ],
)
def test_a_wrong_suite_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "suite.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SuiteError) as caught:
        suites.load(str(path))

    assert str(caught.value) == f"{path}: {message}"


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(
        SuiteError, match=r"^no suite named 'basics', nor such a file \(shipped: basic, chat, tuning\)$"
    ):
        suites.load("basics")
