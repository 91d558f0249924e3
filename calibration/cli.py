"""The `record` command."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import click

from calibration import checkpoints, importing, progress, record_usage, recording, recording_report, suites
from calibration.engine import EngineError, Sampler
from calibration.output import Output
from calibration.recording import Recorded
from calibration.suites import SuiteError
from simulator import console
from traces import TraceError
from traces.importing.two_columns import COLUMNS

HELP = """Run a model once and keep what it says as a trace.

\b
Examples:
  record --model smollm2 --suite basic -o runs/
  record --model smollm2 --suite basic --max-tokens 50 --temperature 0.7 --seed 1 -o warm.jsonl
  record --from mlxcel-log run.log --model Qwen3-8B-4bit --max-tokens 400 -o mine.jsonl
  record --from sharegpt talks.json --model Qwen3-8B --tokenizer ~/models/Qwen3-8B -o talks.jsonl
  record --from azure arrivals.csv --trace story -o timed.jsonl

A model is `smollm2`, which is fetched once (93 MB), or the directory of an mlx-lm checkpoint, whose own code is never
run. Ctrl-C keeps the replies that are finished.

With --from nothing is run: what was said is read out of the FILEs, the model is what the trace shall call it, and
--max-tokens is the limit that the replies were given. Files of mooncake and azure only say when requests arrived, which
they give to those of another trace.
"""


@click.command(cls=console.Command, help=HELP)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--from",
    "source",
    type=click.Choice(importing.SOURCES),
    metavar="FORMAT",
    help=f"Read files instead of asking a model: {', '.join(importing.SOURCES)}.",
)
@click.option("--model", metavar="NAME|DIR", help="Whom to ask, required: smollm2, or an mlx-lm checkpoint.")
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
    "--tokenizer",
    metavar="DIR",
    help="The tokenizer of a Hugging Face model; files of text need it, and with it ids end where the model did.",
)
@click.option(
    "--columns",
    nargs=2,
    default=COLUMNS,
    metavar="PROMPT RESPONSE",
    help=f"Two columns of pairs and arctic-inference, instead of {' and '.join(COLUMNS)}.",
)
@click.option("--trace", metavar="NAME|FILE", help="Whose requests arrive as mooncake or azure says.")
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
def record(source: str | None, where: str, force: bool, as_json: bool, **given: Any) -> None:
    """Parse, record or import, write, print."""
    record_usage.check(source, given["files"])
    output = Output(where, force)
    with console.reports(EngineError, SuiteError, TraceError):
        if source is None:
            header, kept = ask(output, **{name: given[name] for name in record_usage.ASKING})
        else:
            taken = {name: given[name] for name in record_usage.taken(source) if given[name] is not None}
            header, kept = importing.Import(source, given["files"], **taken).read()
            output.check([request.id for request in kept.requests])
            output.write(header, kept.requests)
    paths = [str(output.path(request.id)) for request in kept.requests]
    show(recording_report.document(header, kept, paths), as_json)
    if kept.interrupted:
        asked = len(suites.load(given["suite_name"]).prompts)
        raise click.ClickException(f"interrupted: kept {len(kept.requests)} of {asked} replies")


def ask(
    output: Output,
    *,
    model: str,
    dtype: str | None,
    suite_name: str,
    max_tokens: int | None,
    temperature: float,
    seed: int,
) -> tuple[dict[str, object], Recorded]:
    """Ask a model everything in a suite and write each reply as soon as it is finished.

    Raises:
        EngineError, SuiteError, TraceError: the model, the suite or the output cannot be used.
    """
    sampler = Sampler(temperature, seed)
    suite = suites.load(suite_name)
    output.check([prompt.id for prompt in suite.prompts])
    engine = checkpoints.open_engine(model, dtype)
    header = recording.header(engine, suite, sampler)
    keep = functools.partial(output.add, header)
    return header, recording.record_all(engine, progress.shown(suite.prompts), sampler, max_tokens, keep)


def show(document: Mapping[str, Any], as_json: bool) -> None:
    """Print what was kept, and on stderr what could not be."""
    if as_json:
        console.print_json(document)
    else:
        console.print_text(recording_report.text(document))
    for name in document["silent"]:
        console.note(f"{name}: not kept, since the model ended its reply before the first token")
