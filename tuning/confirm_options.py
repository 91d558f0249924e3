"""The options of `tune --confirm`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from calibration import checkpoints

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--confirm",
        "rounds",
        type=click.IntRange(min=1),
        metavar="ROUNDS",
        help="Hold what is recommended against the real engine, this often; takes --model.",
    ),
    click.option("--model", metavar="NAME|DIR", help="Which engine: smollm2, or an mlx-lm checkpoint."),
    click.option("--dtype", type=click.Choice(checkpoints.DTYPES), help="As for record."),
    click.option("--tokens", type=click.IntRange(min=2), metavar="N", help="Confirm on the first N of every reply."),
    click.option("--save", type=click.Path(path_type=Path), metavar="DIR", help="Keep the raw rounds, or go on."),
    click.option("--allow-mismatch", is_flag=True, help="Confirm on another machine or model than was recorded."),
)
CONFIRMING = ("rounds", "model", "dtype", "tokens", "save", "allow_mismatch")
"""The names of their values; the others need the first."""


def confirming_options(command: Command) -> Command:
    """Add the options to a command, which gets them as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
