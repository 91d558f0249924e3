"""What is refused before a profile is looked at: odd YAML, odd files, names that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import calibration
from calibration import ProfileError
from calibration.strict_yaml import LOADER, parse
from tests.profile_texts import GOOD, refusal

REFUSED = [
    ("notes: [one, two]", "notes: &n [one, two]", ":11: anchor &n is not allowed (write the value out)"),
    ("notes: [one, two]", "notes: *n", ":11: alias *n is not allowed (write the value out)"),
    (
        "name: mine",
        "name: !!python/object/apply:os.system [id]",
        ":2: a tag is not allowed (got 'tag:yaml.org,2002:python/object/apply:os.system')",
    ),
    ("name: mine", "name: !mine mine", ":2: a tag is not allowed (got '!mine')"),
    (
        "bound: device",
        "bound: device\n<<: {a: 1}",
        ":11: a key must be a plain word (got <<, which YAML reads as merge)",
    ),
    ("source: guessed}\n", "source: guessed}\n---\na: 1\n", ":19: a second document begins here (one profile a file)"),
    ("notes: [one, two]", f"notes: {'[' * 20}{']' * 20}", ":11: is nested too deeply (at most 8 levels)"),
    (GOOD, "", ": is empty"),
    (GOOD, "# nothing but a comment\n", ": is empty"),
    (GOOD, "{}\n", ": is empty"),
    (GOOD, "- a\n- b\n", ": must be a mapping (got a list)"),
    (GOOD, "breakeven\n", ": must be a mapping (got 'breakeven')"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_only_plain_yaml_is_read(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert refusal(tmp_path, GOOD.replace(old, new, 1)) == message


def test_text_that_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD.replace("bound: device", "bound: device: host"))

    assert message.startswith(":10: not YAML (mapping values are not allowed")
    assert "\n" not in message


def test_control_characters_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD.replace("A chip", "A \x01chip"))

    assert message.startswith(": not YAML (")
    assert message.endswith("characters are not allowed)")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 5000,
        "- " * 5000,
        "a: 'b",
        "a: [1",
        "\t",
        "a: |\n b\n c: d",
        "? a",
        ": a",
        "!",
        "&",
        "*",
        "%YAML 9.9\n---\na: 1",
        "---\n---\n",
        "a: \ud7ff",
        "\ufeff",
    ],
)
def test_odd_texts_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    message = refusal(tmp_path, text)

    assert "\n" not in message
    assert len(message) < 250


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"a: \xff\n")

    with pytest.raises(ProfileError) as refused:
        calibration.load(str(path))

    assert str(refused.value) == f"{path}: is not UTF-8 text (byte 3)"


def test_a_file_that_cannot_be_a_profile_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"#" * 1_000_001)

    with pytest.raises(ProfileError) as refused:
        calibration.load(str(path))

    assert str(refused.value) == f"{path}: is too large for a profile (1000001 bytes, at most 1000000)"


def test_a_directory_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as refused:
        calibration.load(str(tmp_path))

    assert str(refused.value) == f"{tmp_path}: is not a file"


SHIPPED = ", ".join(calibration.names())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "gb10-qwen3-1.7b",
            f"no profile named 'gb10-qwen3-1.7b' (shipped: {SHIPPED}); did you mean 'gb10-qwen3-1.7b-4bit'?",
        ),
        ("xyz", f"no profile named 'xyz' (shipped: {SHIPPED})"),
        ("", f"no profile named '' (shipped: {SHIPPED})"),
        ("nowhere/mine", f"nowhere/mine: there is no such file (shipped profiles: {SHIPPED})"),
        ("mine.yaml", f"mine.yaml: there is no such file (shipped profiles: {SHIPPED})"),
    ],
)
def test_a_profile_that_is_not_there_is_named_with_those_that_are(where: str, message: str) -> None:
    with pytest.raises(ProfileError) as refused:
        calibration.load(where)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    "text",
    [GOOD.replace("widths: [1, 2, 8]", "widths: [1, 010, 8]"), *(GOOD.replace(old, new, 1) for old, new, _ in REFUSED)],
)
def test_both_yaml_parsers_read_and_refuse_alike(text: str) -> None:
    def outcome(loader: object) -> object:
        try:
            return parse(text, "p.yaml", loader)
        except ProfileError as error:
            return str(error)

    assert outcome(LOADER) == outcome(yaml.SafeLoader)


def test_the_example_of_the_format_page_is_a_profile(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "docs" / "reference" / "profile-format.md"
    example = page.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "example.yaml"
    path.write_text(example, encoding="utf-8")

    assert calibration.load(str(path)).costs().notes == (
        "said in every report that stands on this profile",
        "measured at contexts 1, 512, 2048, linear in between, used for 1..2048",
        "prefill: measured with the rest",
    )
