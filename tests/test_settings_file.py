"""Settings in a file: written and read back, and what is refused in which words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import policies
from policies import PolicyError
from simulator import settings_file

HEAD = "format: breakeven-settings/1\npolicy: gated\n"


@pytest.mark.parametrize(
    "text",
    ["gated", "gated:full_at=1.75,narrow=3,match=earliest", "gated:min_tokens_per_round=2.5", "graded:ema_weight=0.01"],
)
def test_a_policy_comes_back_from_its_file(text: str, tmp_path: Path) -> None:
    policy = policies.load(text)
    path = tmp_path / "found.yaml"
    path.write_text(settings_file.dump(policy, {"date": "2026-11-29", "held_out": "1.03: sure"}))

    assert settings_file.load(str(path)) == policy


def test_none_switches_an_optional_setting_off(tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    path.write_text(HEAD + "settings: {min_tokens_per_round: none, narrow: 3}\n")

    assert settings_file.load(str(path)) == policies.load("gated:narrow=3")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy: gated\nsettings: {}\n", "missing key 'format'"),
        ("format: breakeven-settings/2\npolicy: gated\nsettings: {}\n", "format: must be breakeven-settings/1"),
        (HEAD, "missing key 'settings'"),
        (HEAD + "settings: [1]\n", "settings: must be a mapping (got a list)"),
        (HEAD + "settings: {narrow: [1]}\n", "settings.narrow: must be a number or a word (got a list)"),
        (HEAD + "settings: {narrow: 'a,b'}\n", "settings.narrow: must be a number or a word (got 'a,b')"),
        (HEAD + "settings: {narow: 1}\n", "policy 'gated' has no setting 'narow' (settings: "),
        (HEAD + "settings: {narrow: 0}\n", "narrow must be between 1 and 64 (got 0)"),
        (HEAD + "settings: {}\nevidence: good\n", "evidence: must be a mapping (got 'good')"),
        (HEAD.replace("gated", "gatd") + "settings: {}\n", "no policy named 'gatd' (have: "),
        (HEAD.replace("gated", '"gated:full_at=3"') + "settings: {}\n", "no policy named 'gated:full_at=3' (have: "),
        (HEAD.replace("gated", '"gated "') + "settings: {}\n", "no policy named 'gated ' (have: "),
        (HEAD + 'settings: {"narrow=3,misses": 2}\n', "policy 'gated' has no setting 'narrow=3,misses' (settings: "),
        (HEAD + 'settings: {" narrow": 2}\n', "policy 'gated' has no setting ' narrow' (settings: "),
        (HEAD + 'settings: {narrow: " 2"}\n', "settings.narrow: must be a number or a word (got ' 2')"),
        ("a: [", "not YAML ("),
    ],
)
def test_a_file_that_is_none_of_settings_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    path.write_text(text)

    with pytest.raises(PolicyError) as refused:
        settings_file.load(str(path))

    assert str(refused.value).startswith(str(path))
    assert words in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none.yaml: cannot be read \(No such file or directory\)$"):
        settings_file.load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("name", ["pipe", "/dev/null", "/dev/zero"])
def test_what_is_no_regular_file_is_refused_at_once(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    where = str(tmp_path / name)

    with pytest.raises(PolicyError, match=f"^{where}: is no regular file$"):
        settings_file.load(where)


def test_no_name_is_no_file() -> None:
    with pytest.raises(PolicyError, match=r"^--settings: must be a file \(got ''\)$"):
        settings_file.load("")
