"""What `tune` refuses, in which words, and before it searches."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from simulator import settings_file
from tests.tuning_requests import requests, write
from tuning.cli import tune

FAST = ("--trials", "1", "--workers", "1", "--floor", "0.9")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "said.jsonl", requests(1), requests(1, held_out=True))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(tune, [str(one) for one in arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "gatd"), "no policy named 'gatd' (have: "),
        (("--policy", "gated", "--fix", "depth=1"), "--fix depth: policy 'gated' has no such setting"),
        (
            ("--policy", "gated", "--fix", "ngram_max=1", "--fix", "ngram_min=2"),
            "--fix: ngram_max must be at least ngram_min 2 (got 1)",
        ),
        (
            ("--policy", "gated", "--weight", "code=1"),
            "--weight code: no request is in that category (have: copy, story)",
        ),
        (("--policy", "gated", "--weight", "copy=x"), "--weight copy: must be a number (got 'x')"),
        (("--policy", "gated", "--trace", "said.jsonl"), "request 'copy0' is there twice\n"),
        (("--policy", "gated", "--keep", "2"), "keep must be between 0 and 1 (got 2)"),
        (("--policy", "gated", "--sampler", "grid"), "the grid has "),
        (("--policy", "gated", "--storage", "no/x.journal"), "no/x.journal: cannot be written (no directory 'no')"),
        (("--policy", "gated", "--storage", "who://x"), "who://x: is no address of a database"),
        (
            ("--policy", "gated", "--storage", "postgrsql://ann:secret@host/db"),
            "postgrsql://***@host/db: is no address of a database (",
        ),
        (
            ("--policy", "gated", "--storage", "postgresql://ann:secret@host:54x2/db"),
            "postgresql://***@host:54x2/db: is no address of a database\n",
        ),
        (
            ("--policy", "gated", "--storage", "postgresql://ann:se{cr}et@host/db"),
            "postgresql://***@host/db: is no address of a database\n",
        ),
        (
            ("--policy", "gated", "--storage", "postgresql://ann:se/cr@et@host:54x2/db"),
            "postgresql://***@host:54x2/db: is no address of a database\n",
        ),
        (
            ("--policy", "gated", "--storage", "postgresql:/ann:secret@host/db"),
            "postgresql://***@host/db: is no address of a database (one slash where two are wanted)\n",
        ),
        (
            ("--policy", "gated", "--fix", "ngram_max=4", "--range", "ngram_min=5..8"),
            "--fix: ngram_max must be at least ngram_min 5 (got 4)\n",
        ),
        (("--policy", "gated", "--storage", ""), "--storage: must be a file or the URL of a database (got '')"),
        (("--policy", "gated", "--profile", "gb11"), "no profile named 'gb11'"),
        (("--policy", "gated", "-o", ".", "--force"), ".: cannot be written (it is a directory)"),
        (("--policy", "gated", "-o", "no/x.yaml"), "no/x.yaml: cannot be written (no directory 'no')"),
        (("--policy", "gated", "-o", "/proc/x.yaml"), "/proc/x.yaml: cannot be written ("),
        (("--policy", "gated", "-o", "/dev/null", "--force"), "/dev/null: is no regular file"),
        (("--policy", "gated", "-o", "x" * 256), "x" * 256 + ": cannot be written (File name too long)"),
        (
            ("--policy", "breakeven", "--emit", "mlxcel"),
            "--emit mlxcel: mlxcel has no policy 'breakeven' (have: fixed, gated, graded)",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(trace: str, arguments: tuple[str, ...], words: str) -> None:
    done = run("--trace", trace, *FAST, *arguments)

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1
    journal = Path("tune.journal")
    assert not journal.exists() or not journal.stat().st_size  # nothing was searched


@pytest.mark.parametrize(("kind", "words"), [("story", "copy"), ("copy", "are free prose")])
def test_trade_offs_between_what_is_not_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = tuple(one for one in (*requests(3), *requests(3, held_out=True)) if kind in one.tags)

    done = run("--policy", "gated", "--trace", write(tmp_path / "said.jsonl", parts), *FAST, "--sampler", "nsgaii")

    said = f"--sampler nsgaii: trades copying against prose, and no requests for tuning {words}\n"
    assert (done.exit_code, done.stderr) == (1, said)


@pytest.mark.parametrize(
    "narrowed",
    [
        ("--fix", "ngram_min=5"),
        ("--fix", "ngram_min=5", "--range", "ngram_max=6..8"),
        ("--fix", "ngram_min=5", "--range", "ngram_max=3,6"),
    ],
)
def test_ends_of_the_suffix_that_some_draw_takes_are_searched(trace: str, narrowed: tuple[str, ...]) -> None:
    free = ("--floor", 0, "--keep", 0, "--trials", 9, "--workers", 1)
    done = run("--policy", "fixed", "--trace", trace, *free, "--json", *narrowed)

    assert (done.exit_code, done.stderr) == (0, "")
    assert any("speedup" in one for one in json.loads(done.stdout)["trials"])


def test_a_file_may_have_as_long_a_name_as_there_are(trace: str) -> None:
    name = "x" * 250 + ".yaml"

    assert run("--policy", "gated", "--trace", trace, *FAST, "-o", name).stderr == ""
    assert settings_file.load(name).name == "gated"


def test_what_was_found_is_printed_even_where_it_cannot_be_written(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)

    done = run("--policy", "gated", "--trace", trace, *FAST, "-o", "found.yaml")

    assert (done.exit_code, done.stderr) == (1, "found.yaml: cannot be written (No space left on device)\n")
    assert done.stdout.splitlines()[-1].startswith("gated: ")
    assert sorted(path.name for path in Path().iterdir()) == ["said.jsonl", "tune.journal"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--sampler", "annealing"),
        ("--trials", "0"),
        ("--parallel", "2"),
        ("--x",),
        ("--timeout", "nan"),
        ("--seed", "4294967296"),
        ("--emit", "mlxcel", "--json"),
    ],
)
def test_a_wrong_command_line_exits_2(trace: str, arguments: tuple[str, ...]) -> None:
    done = run("--policy", "gated", "--trace", trace, *arguments)

    assert done.exit_code == 2
    assert done.stderr.startswith("tune: ")
