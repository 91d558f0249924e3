"""The reference pages name what the code has, and what pages point to in the sources is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import policies
from calibration.cli import record
from simulator.cli import simulate
from tests.documents import ROOT, SCRIPTS, pages
from traces.reader import KEYS

REFERENCE = ROOT / "docs" / "reference"
TREE = re.compile(r"^## Where things are\n+```text\n(?P<tree>.*?)^```$", re.MULTILINE | re.DOTALL)


def code_words(page: Path) -> set[str]:
    """Return everything that a page sets in backquotes in its text."""
    return set(re.findall(r"`([^`\n]+)`", page.read_text("utf-8")))


def table_keys(page: Path) -> set[str]:
    """Return the names in the first column of a page's tables."""
    first = re.findall(r"^\| (`[^|]*) \|", page.read_text("utf-8"), re.MULTILINE)
    return {word for cell in first for word in re.findall(r"`([^`]+)`", cell)}


def document_fields(value: Any) -> Iterator[str]:
    """Yield the fields of a JSON document, those of its objects included."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in ("settings", "counters", "differences"):
                yield from document_fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from document_fields(inner)


def test_every_field_of_the_json_document_is_documented(tmp_path: Path) -> None:
    log, trace = str(ROOT / "docs" / "how-to" / "mlxcel-sample.log"), str(tmp_path / "t.jsonl")
    runner = CliRunner()
    runner.invoke(record, ["--from", "mlxcel-log", log, "--model", "m", "-o", trace])

    done = runner.invoke(simulate, ["--policy", "gated", "--trace", trace, "--against", log, "--json", "--events"])

    known = code_words(REFERENCE / "commands.md") | code_words(REFERENCE / "counters.md") | {"name"}
    assert done.exit_code == 0
    assert sorted(set(document_fields(json.loads(done.stdout))) - known) == []


def test_every_key_of_a_request_is_documented() -> None:
    assert set(KEYS) <= table_keys(REFERENCE / "trace-format.md")


def test_every_policy_has_a_section() -> None:
    headings = re.findall(r"^## (\w+)$", (REFERENCE / "policies.md").read_text("utf-8"), re.MULTILINE)

    assert sorted({*policies.names(), "oracle"} - set(headings)) == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_command_has_a_section_with_its_help(script: str) -> None:
    page = (REFERENCE / "commands.md").read_text("utf-8")

    assert f"\n## {script}\n\n```console\n$ {script} --help\n" in page


def test_what_the_readme_s_tree_names_is_there() -> None:
    found = TREE.search((ROOT / "README.md").read_text("utf-8"))
    assert found
    folder, missing = "", []
    for line in found["tree"].splitlines():
        names = re.findall(r"[\w/-]+/(?=  )|\w+\.py", line)
        if line and not line.startswith(" "):
            folder, names = names[0], []
        missing += [folder + name for name in names if not (ROOT / folder / name).exists()]

    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_test_that_a_page_names_exists(page: Path) -> None:
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").glob("*.py"))
    words = code_words(page)
    tests = {word for word in words if re.fullmatch(r"test_\w+", word)}
    files = {
        word for word in words if re.fullmatch(r"(tests|traces|policies|calibration|simulator|tuning)/\S*\w", word)
    }

    assert sorted(test for test in tests if f"def {test}(" not in sources) == []
    assert sorted(file for file in files if not (ROOT / file).exists()) == []
