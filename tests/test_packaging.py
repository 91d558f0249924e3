"""What an installation gives: five import names of our own, and commands that start fast and explain themselves."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.documents import ROOT, SCRIPTS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NAME: str = PROJECT["project"]["name"]
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
HEAVY = {"mlx", "mlx_lm", "optuna", "pandas", "rich", "tokenizers", "transformers"}


def load_command(script: str) -> click.Command:
    module, _, attribute = SCRIPTS[script].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    return command


def help_text(script: str) -> str:
    result = CliRunner().invoke(load_command(script), ["--help"], prog_name=script)
    assert result.exit_code == 0
    return result.output


def help_examples(script: str) -> list[str]:
    """List the command lines that a command's help shows, the usage line left out."""
    text = help_text(script).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if re.match(rf" +{script} ", line)]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_name_is_ours_alone(package: str) -> None:
    others = sorted(set(importlib.metadata.packages_distributions().get(package, [])) - {NAME})

    assert others == [], f"{package!r} is also installed by {others}; use a fresh venv"


def test_the_wheel_check_lists_the_packages_of_the_wheel() -> None:
    assert PROJECT["tool"]["check-wheel-contents"]["toplevel"] == PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_command_shows_examples_that_it_would_accept(script: str) -> None:
    examples = help_examples(script)

    assert examples
    for example in examples:
        load_command(script).make_context(script, shlex.split(example)[1:]).close()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_command_is_in_the_readme(script: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")

    assert re.search(rf"`{script}\b|^\$ {script}\b", readme, re.MULTILINE), f"README.md does not show {script!r}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_command_starts_without_the_heavy_libraries(script: str, tmp_path: Path) -> None:
    module = SCRIPTS[script].partition(":")[0]
    code = f"import sys, {module}; print(*sorted(sys.modules.keys() & {HEAVY}))"

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("\n", "")


def test_every_pinned_version_is_one_line_without_an_address() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()

    pins = [line for line in lines if not line.startswith("#")]

    assert [pin for pin in pins if not re.fullmatch(r"[\w.\-]+==[\w.+!]+", pin)] == []
