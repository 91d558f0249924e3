"""The documentation shows what the commands print, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import ROOT, documents, pages, rerun, rerun_page, run

LINKED = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", documents(), ids=named)
def test_a_document_shows_what_its_commands_print(document: Path, tmp_path: Path) -> None:
    assert rerun(document, tmp_path) == document.read_text("utf-8")


def test_every_output_file_belongs_to_an_example() -> None:
    outputs = [path for path in (ROOT / "docs" / "examples").glob("*.out") if not path.with_suffix(".py").exists()]

    assert outputs == []


@pytest.mark.parametrize("page", LINKED, ids=named)
def test_internal_links_lead_somewhere(page: Path) -> None:
    dead = [target for target in internal_links(page.read_text("utf-8")) if not leads_somewhere(page, target)]

    assert dead == []


def test_a_changed_output_is_put_right(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("first\nsecond\n", "utf-8")
    page = "Before.\n```console\n$ cat note\nfirst\n$ cat \\\n    note\n```\n```sh\n$ rm -rf /\n```\n"

    shown = rerun_page(page, tmp_path)

    assert shown == (
        "Before.\n```console\n$ cat note\nfirst\nsecond\n$ cat \\\n    note\nfirst\nsecond\n```\n"
        "```sh\n$ rm -rf /\n```\n"
    )


def test_a_failure_is_shown_only_where_the_page_announces_it(tmp_path: Path) -> None:
    page = "```console exit=1\n$ cat missing\n```\n"

    shown = rerun_page(page, tmp_path)

    assert re.fullmatch(r"```console exit=1\n\$ cat missing\ncat: .*\n```\n", shown)
    with pytest.raises(ValueError, match=r"^'cat missing': exit code 1, not 0\n"):
        run("cat missing", tmp_path)


def test_only_the_projects_own_commands_are_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^'rm -r docs': not run in documentation \(only: "):
        run("rm -r docs", tmp_path)


@pytest.mark.parametrize(
    "page", ["  ```console\n  $ cat a\n  ```\n", "```console code=1\n```\n", "```console\n$ cat a\n"]
)
def test_a_block_that_would_not_be_run_is_refused(page: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^a block of commands starts a line with "):
        rerun_page(page, tmp_path)


def internal_links(text: str) -> list[str]:
    """List the targets of a page's links to this repository, those in code left out."""
    prose = re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return [match["target"] for match in LINK.finditer(prose) if not re.match(r"[a-z]+:", match["target"])]


def leads_somewhere(page: Path, target: str) -> bool:
    """Say whether a link's file is there, and the heading it names in it."""
    name, _, heading = target.partition("#")
    path = page.parent / name if name else page
    return path.exists() and (not heading or heading in anchors(path.read_text("utf-8")))


def anchors(text: str) -> set[str]:
    """Name the headings of a page as GitHub does (repeated headings get no number)."""
    headings = re.findall(
        r"^#+ +(.*?) *$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
