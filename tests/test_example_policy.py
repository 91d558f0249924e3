"""The policy that the how-to page adds: its file, put into `policies/`, is found, runs and keeps the contract."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

PACKAGES = ("traces", "policies", "calibration", "simulator", "tuning", "tests")
EXAMPLE = ROOT / "docs" / "examples" / "new_policy" / "doubling.py"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the sources, the example's file among the policies, into a directory of their own."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "policies")
    return tmp_path


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The directory that a program is started from comes before everything that is installed.
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, capture_output=True, encoding="utf-8", check=False
    )


def test_the_command_finds_the_new_policy_by_its_file(copy: Path) -> None:
    trace = str(ROOT / "docs" / "examples" / "greeting.jsonl")
    program = "from simulator.cli import simulate; simulate()"

    done = python(copy, "-c", program, "--policy", "doubling:first=4", "--trace", trace, "--json", "--events")

    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["policy"]["name"], document["policy"]["settings"]["first"]) == ("doubling", 4)
    # At `2 3` the prompt offers `4 5 6 9`; a whole block of four is granted and the first three land.
    assert document["requests"][0]["events"] == "S S V5:3 S!"


def test_the_new_policy_keeps_the_contract(copy: Path) -> None:
    promises = "doubling or two_runs_are_equal"

    done = python(
        copy,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        promises,
        "tests/test_policies.py",
        "tests/test_stream.py",
    )

    assert done.returncode == 0, done.stdout
