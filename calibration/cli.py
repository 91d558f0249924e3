"""The `record` command."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from calibration import checkpoints, importing, progress, recording, recording_report, suites
from calibration.engine import EngineError, Sampler
from calibration.output import Output
from calibration.suites import SuiteError
from simulator import console
from traces import TraceError

HELP = """Run a model once and keep what it says as a trace.

\b
Examples:
  record --model smollm2 --suite basic -o runs/
  record --model smollm2 --suite basic --max-tokens 50 --temperature 0.7 --seed 1 -o warm.jsonl
  record --from mlxcel-log run.log --model Qwen3-8B-4bit --max-tokens 400 -o mine.jsonl

A model is `smollm2`, which is fetched once (93 MB), or the directory of an mlx-lm checkpoint, whose own code is never
run. Ctrl-C keeps the replies that are finished.

With --from nothing is run: the FILEs are logs of the reference engine, made with MLXCEL_PRINT_TOKEN_IDS set and stdout
and stderr together, the model is what the trace shall call it, and --max-tokens is the limit that the runs were given.
"""


@click.command(cls=console.Command, help=HELP)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--from", "source", type=click.Choice(importing.SOURCES), help="Read logs instead of asking a model.")
@click.option("--model", required=True, metavar="NAME|DIR", help="Whom to ask: smollm2, or an mlx-lm checkpoint.")
@click.option(
    "--dtype",
    type=click.Choice(checkpoints.DTYPES),
    help="What the weights are dequantised to; bfloat16 for smollm2, and as stored for a directory, unless given.",
)
@click.option(
    "--suite",
    "suite_name",
    default="basic",
    show_default=True,
    metavar="NAME|FILE",
    help="What to ask: a shipped suite or a JSON file.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    help=f"The longest reply, instead of each prompt's own limit ({recording.DEFAULT_MAX_TOKENS} where it has none).",
)
@click.option("--temperature", default=0.0, show_default=True, help="Draw tokens at this temperature; 0 is greedy.")
@click.option("--seed", default=0, show_default=True, help="With a position, the key of each draw.")
@click.option(
    "-o",
    "--output",
    "where",
    required=True,
    metavar="FILE|DIR/",
    help="One trace for everything, or a directory (ending in a slash, or there already) of one trace each.",
)
@click.option("--force", is_flag=True, help="Overwrite traces that are there already.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.version_option(package_name="breakeven")
def record(
    files: Sequence[str],
    source: str | None,
    model: str,
    dtype: str | None,
    suite_name: str,
    max_tokens: int | None,
    temperature: float,
    seed: int,
    where: str,
    force: bool,
    as_json: bool,
) -> None:
    """Parse, record or import, write, print."""
    check_usage(files, source)
    output = Output(where, force)
    with console.reports(EngineError, SuiteError, TraceError):
        if source:
            header = importing.header(model, source, files)
            kept = importing.import_all(files, max_tokens)
            output.check([request.id for request in kept.requests])
            output.write(header, kept.requests)
        else:
            sampler = Sampler(temperature, seed)
            suite = suites.load(suite_name)
            output.check([prompt.id for prompt in suite.prompts])
            engine = checkpoints.open_engine(model, dtype)
            header = recording.header(engine, suite, sampler)
            keep = functools.partial(output.add, header)
            kept = recording.record_all(engine, progress.shown(suite.prompts), sampler, max_tokens, keep)
    paths = [str(output.path(request.id)) for request in kept.requests]
    show(recording_report.document(header, kept, paths), as_json)
    if kept.interrupted:
        raise click.ClickException(f"interrupted: kept {len(kept.requests)} of {len(suite.prompts)} replies")


def show(document: Mapping[str, Any], as_json: bool) -> None:
    """Print what was kept, and on stderr what could not be."""
    if as_json:
        console.print_json(document)
    else:
        console.print_text(recording_report.text(document))
    for name in document["silent"]:
        console.note(f"{name}: not kept, since the model ended its reply before the first token")


def check_usage(files: Sequence[str], source: str | None) -> None:
    """Refuse logs without `--from`, and with it what only asking a model needs.

    Raises:
        click.UsageError: a combination that means nothing.
    """
    if source is None:
        if files:
            raise click.UsageError(f"a FILE needs --from {'|'.join(importing.SOURCES)} (got {files[0]!r})")
        return
    if not files:
        raise click.UsageError(f"--from {source} needs a FILE")
    context = click.get_current_context()
    for name, option in (
        ("dtype", "--dtype"),
        ("suite_name", "--suite"),
        ("temperature", "--temperature"),
        ("seed", "--seed"),
    ):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for asking a model, which --from {source} is not")
