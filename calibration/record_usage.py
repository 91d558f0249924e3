"""Which options of `record` go together: each way to make a trace takes its own."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource

from calibration import importing
from traces.importing.formats import ARRIVALS, PAIRS

ASKING = ("model", "dtype", "suite_name", "max_tokens", "temperature", "seed")
"""What asking a model takes, by the names of the command's parameters."""

OPTIONS = {
    "model": "--model",
    "dtype": "--dtype",
    "suite_name": "--suite",
    "max_tokens": "--max-tokens",
    "temperature": "--temperature",
    "seed": "--seed",
    "tokenizer": "--tokenizer",
    "columns": "--columns",
    "trace": "--trace",
}


def taken(source: str) -> tuple[str, ...]:
    """Return what an import from a source takes, by the names of the command's parameters."""
    if source in ARRIVALS:
        return ("trace",)
    if source == importing.LOGS:
        return ("model", "max_tokens")
    return ("model", "max_tokens", "tokenizer", *(["columns"] if source in PAIRS else []))


def check(source: str | None, files: Sequence[str]) -> None:
    """Refuse a combination of options that means nothing, or lacks something.

    Args:
        source: what `--from` says, if it is there.
        files: the files to read.

    Raises:
        click.UsageError: naming the option.
    """
    if source is None and files:
        raise click.UsageError(f"a FILE needs --from {'|'.join(importing.SOURCES)} (got {files[0]!r})")
    if source is not None and not files:
        raise click.UsageError(f"--from {source} needs a FILE")
    context = click.get_current_context()
    given = {name for name in OPTIONS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    known = ASKING if source is None else taken(source)
    for name in (name for name in OPTIONS if name in given and name not in known):
        if source is None:
            raise click.UsageError(f"{OPTIONS[name]} needs --from {'|'.join(_with(name))}")
        if name in ("dtype", "suite_name", "temperature", "seed"):
            raise click.UsageError(f"{OPTIONS[name]} is for asking a model, which --from {source} is not")
        raise click.UsageError(f"{OPTIONS[name]} does not go with --from {source}")
    needed = "trace" if source in ARRIVALS else "model"
    if needed not in given:
        raise click.UsageError(f"Missing option {OPTIONS[needed]!r}")


def _with(name: str) -> list[str]:
    return [source for source in importing.SOURCES if name in taken(source)]
